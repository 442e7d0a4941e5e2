-- Delivery by webhook and stream, and corrections: who was sent what, grant by grant.

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
    primary key (season_id, correction, grant_id)
);

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

drop view finale.payable;
alter table finale.delivery add column correction int not null default 0;
alter table finale.delivery drop constraint delivery_pkey;
alter table finale.delivery add primary key (season_id, correction);
alter table finale.delivery add column planned_at timestamptz not null default clock_timestamp();
update finale.delivery set planned_at = delivered_at;
alter table finale.delivery alter column delivered_at drop not null;
alter table finale.delivery alter column delivered_at drop default;
alter table finale.delivery add column failures int not null default 0;
alter table finale.delivery add column paused_until timestamptz;
create index delivery_open on finale.delivery (season_id) where delivered_at is null;

create view finale.payable as
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.grants g using (season_id)
    where d.mode = 'table' and d.correction = 0 and d.delivered_at is not null
    union all
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.correction_grants g using (season_id, correction)
    where d.mode = 'table' and d.delivered_at is not null;
