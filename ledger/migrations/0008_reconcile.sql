-- Differences between Redis and the ledger that a person has accepted.
create table finale.drift_acceptance (
    season_id   int not null,
    difference  text collate "C" not null,  -- SHA-256 of exactly these drifting players
    report      text collate "C" not null,
    players     bigint not null,
    who         text not null,
    because     text not null,
    accepted_at timestamptz not null default clock_timestamp(),
    primary key (season_id, difference)
);

-- How far the checks of a season that is being played have come.
create table finale.live_check (
    season_id     int primary key,
    checked_at    timestamptz not null,
    watermark     timestamptz not null,  -- every result recorded before it was looked at
    ledger_cursor bytea,                 -- the last player of the slow round; null at its start
    redis_cursor  text not null default '0',
    redis_key     int not null default 0,
    server        text not null default '',
    rounds        int not null default 0,
    found         jsonb not null default '{}'
);

-- Results come in the order in which they are recorded, so a few pages tell which players were active lately.
create index match_result_recorded on finale.match_result using brin (recorded_at);
