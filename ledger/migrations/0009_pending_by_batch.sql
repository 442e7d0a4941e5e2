-- Who waits to be written stands on the list once a batch and bucket: docs/decisions/0022.
create temp table waiting on commit drop as select season_id, bucket, player_id from finale.pending;
drop table finale.pending;

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

insert into finale.pending (season_id, bucket, players)
select season_id, bucket, array_agg(player_id)
from (
    select *, row_number() over (partition by season_id, bucket order by player_id) / 1000 as part from waiting
) w
group by season_id, bucket, part;
