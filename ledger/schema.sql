-- The whole schema of the ledger, to be read: what all migrations together make, which a test proves.
-- A database is made and brought up to date by `finale db migrate`.

create schema finale;

-- What has been applied.
create table finale.migration (
    version    int primary key,
    name       text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- Tells this ledger's own staged files from those of another installation in the same bucket.
create table finale.installation (
    only_one boolean primary key default true check (only_one),
    id       text not null default substr(md5(gen_random_uuid()::text), 1, 8)
);
insert into finale.installation default values;

-- A stream of match results. Its number keeps the wide tables narrow.
create table finale.source (
    source_id  int generated always as identity primary key,
    name       text collate "C" not null unique,
    seen_at    timestamptz not null default clock_timestamp()
);

create table finale.season (
    season_id   int generated always as identity primary key,
    board       text collate "C" not null,
    season      text collate "C" not null,
    state       text collate "C" not null default 'scheduled',
    starts_at   timestamptz not null,
    ends_at     timestamptz not null,
    closes_at   timestamptz not null,
    backfill    boolean not null default false,
    definition  jsonb not null,
    live_key    text collate "C" not null,
    fixed_at    timestamptz,  -- definition, codec and live key no longer follow the configuration: opened, or counted
    frozen_at   timestamptz,
    sealed_at   timestamptz,
    keep_until  timestamptz,
    hold_reason text,
    hold_detail text,
    hold_hint   text,
    held_at     timestamptz,
    attempts    int not null default 0,
    last_error  text,
    created_at  timestamptz not null default clock_timestamp(),
    adopted     boolean not null default false,  -- a key that Finale never opened: nothing is written to it
    retry_at    timestamptz,  -- when a step that failed is tried again, without a person
    pruned_at   timestamptz,  -- its results are in the archive and no longer here
    hold_told_at timestamptz, -- held_at of the hold that the webhook was told of
    unique (board, season),
    check (starts_at < ends_at and ends_at <= closes_at),
    check (state in ('scheduled', 'open', 'closing', 'frozen', 'snapshotted', 'reconciled',
                     'sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')),
    check ((hold_reason is null) = (held_at is null))
);
create index season_bounds on finale.season (board, starts_at, ends_at);

-- Who may act on a season. A table of its own, so that a heartbeat never touches the season's row.
create table finale.lease (
    season_id   int primary key,
    holder      text not null,
    fence       bigint not null,
    acquired_at timestamptz not null,
    expires_at  timestamptz not null
);

-- While it has a row, no runner takes a step: who stopped everything, and why.
create table finale.pause (
    only_one boolean primary key default true check (only_one),
    since    timestamptz not null default clock_timestamp(),
    who      text not null,
    because  text not null
);

create table finale.journal (
    journal_id bigint generated always as identity primary key,
    season_id  int not null,
    at         timestamptz not null default clock_timestamp(),
    event      text collate "C" not null,
    step       text collate "C",
    fence      bigint,
    who        text not null,
    detail     jsonb not null default '{}'
);
create index journal_season on finale.journal (season_id, journal_id);

-- What a finished step hands to the later ones.
create table finale.step_result (
    season_id   int not null,
    step        text collate "C" not null,
    result      jsonb not null,
    fence       bigint not null,
    finished_at timestamptz not null default clock_timestamp(),
    primary key (season_id, step)
);

create table finale.match_result (
    source_id   int not null,
    match_id    text collate "C" not null,
    player_id   bytea not null,
    points      bigint not null,
    played_at   timestamptz not null,
    attributes  jsonb,
    recorded_at timestamptz not null default clock_timestamp(),
    voided      boolean not null default false,
    primary key (source_id, match_id, player_id)
);
create index match_result_player on finale.match_result (source_id, player_id, played_at);
create index match_result_time on finale.match_result using brin (played_at);
-- Results come in the order in which they are recorded, so a few pages tell which players were active lately.
create index match_result_recorded on finale.match_result using brin (recorded_at);

-- A result that came after a season's freeze: kept, named late, never counted there.
create table finale.late_result (
    season_id   int not null,
    source_id   int not null,
    match_id    text collate "C" not null,
    player_id   bytea not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (season_id, source_id, match_id, player_id)
);

-- Matches that count no more, by whose word and why. An empty player means everybody's result, also one still to come.
create table finale.void (
    source_id int not null,
    match_id  text collate "C" not null,
    player_id bytea not null,
    who       text not null,
    because   text not null,
    voided_at timestamptz not null default clock_timestamp(),
    primary key (source_id, match_id, player_id)
);

-- A result that was voided after a season's freeze: it still counts in the season's totals, and corrections undo it.
create table finale.late_void (
    season_id   int not null,
    source_id   int not null,
    match_id    text collate "C" not null,
    player_id   bytea not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (season_id, source_id, match_id, player_id)
);

-- Results that were not taken, with the reason, as they were given. The fingerprint makes a repeated import add nothing.
create table finale.set_aside (
    source_id   int not null,
    fingerprint bytea not null,
    kind        text collate "C" not null check (kind in ('conflict', 'refused')),
    reason      text not null,
    given       jsonb not null,
    origin      text not null,
    line        bigint not null,
    recorded_at timestamptz not null default clock_timestamp(),
    played_at   timestamptz,  -- unknown where it could not be read
    primary key (source_id, fingerprint)
);

-- A player's total, and what later matches may be added to without counting the earlier ones again: when the first and
-- the last were played, and the most and the least points ever held. Where that is unknown, all are counted.
create table finale.player_total (
    season_id  int not null,
    player_id  bytea not null,
    points     bigint not null,
    reached_at timestamptz not null,
    matches    int not null,
    version    bigint not null,
    first_at   timestamptz,
    last_at    timestamptz,
    highest    bigint,
    lowest     bigint,
    primary key (season_id, player_id)
) with (fillfactor = 80);

-- Players whose last match was voided: whenever a board is written anew, they must not be on it.
create table finale.removed_player (
    season_id int not null,
    player_id bytea not null,
    primary key (season_id, player_id)
);

-- Players whose totals Redis may not have yet, as each batch of results left them: only ever added and taken off.
create table finale.pending (
    season_id  int not null,
    bucket     smallint not null,
    pending_id bigint generated always as identity,
    players    bytea[] not null,
    size       int not null generated always as (cardinality(players)) stored,
    primary key (season_id, bucket, pending_id)
);
-- Written once and read once, soon: compressing would only cost time.
alter table finale.pending alter column players set storage external;

-- Who may write a bucket of players to Redis.
create table finale.bucket_lease (
    season_id  int not null,
    bucket     smallint not null,
    holder     text not null,
    fence      bigint not null,
    expires_at timestamptz not null,
    primary key (season_id, bucket)
);

-- The last batch of a bucket known to be in each of the season's live keys: its running number, and its token.
create table finale.bucket_mark (
    season_id int not null,
    bucket    smallint not null,
    shard     smallint not null,
    number    bigint not null,
    token     text not null,
    primary key (season_id, bucket, shard)
) with (fillfactor = 50);

-- The exact bytes of every seal, in the order of the board's chain.
create table finale.seal (
    season_id    int not null,
    kind         text collate "C" not null,
    board        text collate "C" not null,
    number       int not null,
    previous     text,
    sha256       text not null,
    body         bytea not null,
    fence        bigint not null,
    committed_at timestamptz not null default clock_timestamp(),
    primary key (season_id, kind),
    unique (board, number)
);

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
    found         jsonb not null default '{}',
    active_cursor  bytea,                -- the last player active since the watermark that was looked at
    active_horizon timestamptz           -- what the watermark will be once all of them were; null between two rounds
);

-- A partition a season, loaded, verified, indexed and attached in one transaction. `grant` is a word of SQL.
create table finale.grants (
    season_id int not null,
    grant_id  uuid not null,
    player_id bytea not null,
    rule      text collate "C" not null,
    item      text collate "C" not null,
    amount    bigint not null check (amount > 0),
    position  bigint not null,
    rank      bigint not null,
    primary key (season_id, grant_id)
) partition by list (season_id);

-- What a correction changed: signed amounts, beside the grants, which stay as they were.
create table finale.correction_grants (
    season_id  int not null,
    correction int not null check (correction > 0),
    grant_id   uuid not null,
    player_id  bytea not null,
    rule       text collate "C" not null,
    item       text collate "C" not null,
    amount     bigint not null check (amount <> 0),
    position   bigint not null,
    rank       bigint not null,
    corrects   uuid not null,
    primary key (season_id, correction, grant_id)
);
create index correction_grants_player on finale.correction_grants (season_id, player_id);

-- How a season's grants (correction 0), and those of each correction, reach the game, and since when all have.
-- A target that answers nothing usable is left alone until paused_until.
create table finale.delivery (
    season_id    int not null,
    mode         text collate "C" not null,
    grants       bigint not null,
    delivered_at timestamptz,
    correction   int not null default 0,
    planned_at   timestamptz not null default clock_timestamp(),
    failures     int not null default 0,
    paused_until timestamptz,
    primary key (season_id, correction)
);
create index delivery_open on finale.delivery (season_id) where delivered_at is null;

-- Grants on their way to a webhook or a stream, one row each. A deliverer claims a batch for a while; only the claim
-- that a row has may settle it. The mark is where a stream ended before the grant was first sent.
create sequence finale.outbox_claim;
create table finale.outbox (
    season_id     int not null,
    correction    int not null,
    grant_id      uuid not null,
    state         text collate "C" not null default 'waiting' check (state in ('waiting', 'acknowledged', 'dead')),
    attempts      int not null default 0,
    due_at        timestamptz not null default clock_timestamp(),
    claim         bigint,
    holder        text,
    claimed_until timestamptz,
    mark          text,
    reason        text,
    settled_at    timestamptz,
    primary key (season_id, correction, grant_id)
);
create index outbox_waiting on finale.outbox (season_id, due_at, correction, grant_id) where state = 'waiting';

-- What a game reads and pays: only what has been delivered. Corrections have signed amounts.
create view finale.payable as
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction, null::uuid as corrects
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.grants g using (season_id)
    where d.mode = 'table' and d.correction = 0 and d.delivered_at is not null
    union all
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction, g.corrects
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.correction_grants g using (season_id, correction)
    where d.mode = 'table' and d.delivered_at is not null;

-- The bucket of a player, 0..63: stable across versions of PostgreSQL, unlike its own hash functions.
create function finale.bucket_of(player_id bytea) returns smallint
    language sql immutable strict parallel safe
    return (get_byte(sha256(player_id), 0) & 63)::smallint;

-- Whether a result's attributes satisfy a board's filter. Both are kept as text, since files carry text.
create function finale.matches_filter(attributes jsonb, wanted jsonb) returns boolean
    language sql immutable parallel safe
    return coalesce(attributes, '{}') @> wanted;
