alter table finale.match_result add column voided boolean not null default false;

create table finale.void (
    source_id int not null,
    match_id  text collate "C" not null,
    player_id bytea not null,
    who       text not null,
    because   text not null,
    voided_at timestamptz not null default clock_timestamp(),
    primary key (source_id, match_id, player_id)
);

create table finale.late_void (
    season_id   int not null,
    source_id   int not null,
    match_id    text collate "C" not null,
    player_id   bytea not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (season_id, source_id, match_id, player_id)
);

create table finale.removed_player (
    season_id int not null,
    player_id bytea not null,
    primary key (season_id, player_id)
);

alter table finale.player_total
    add column first_at timestamptz,
    add column last_at  timestamptz,
    add column highest  bigint,
    add column lowest   bigint;

alter table finale.set_aside add column played_at timestamptz;

alter table finale.season add column pruned_at timestamptz;
