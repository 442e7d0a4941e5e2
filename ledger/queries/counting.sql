-- name: rules
create temp table rules on commit drop as
select * from jsonb_to_recordset(%(rules)s) as r (
    season_id int, board text, starts_at timestamptz, ends_at timestamptz, wanted jsonb,
    aggregate text, descending boolean, least bigint, most bigint, frozen boolean
);

-- name: touch
insert into finale.player_total as t (season_id, player_id, points, reached_at, matches, version)
select season_id, player_id, 0, 'epoch', 0, 1
from (select distinct season_id, player_id from counted where not frozen) c
order by season_id, player_id
on conflict (season_id, player_id) do update set version = t.version + 1;

-- name: recount
create temp table fresh on commit drop as
with touched as (
    select distinct season_id, player_id from counted where not frozen
), matches as (
    select t.season_id, t.player_id, m.match_id, m.played_at, m.points, r.aggregate, r.descending
    from touched t
    join rules r using (season_id)
    join finale.match_result m
      on m.source_id = %(source_id)s and m.player_id = t.player_id
     and m.played_at >= r.starts_at and m.played_at < r.ends_at
     and finale.matches_filter(m.attributes, r.wanted)
    where not exists (
        select from finale.late_result l
        where l.season_id = t.season_id and l.source_id = m.source_id
          and l.match_id = m.match_id and l.player_id = m.player_id
    )
), held as (
    -- What the player held from each instant on; matches of one instant take effect together.
    select season_id, player_id, played_at,
           case aggregate
               when 'sum' then sum(points) over upto
               when 'best' then case when descending then max(points) over upto else min(points) over upto end
               else last_value(points) over instant
           end::numeric as points
    from matches
    window upto as (partition by season_id, player_id order by played_at),
           instant as (partition by season_id, player_id, played_at order by match_id
                       rows between unbounded preceding and unbounded following)
), present as (
    select season_id, player_id, played_at, points, last_value(points) over whole as final
    from held
    window whole as (partition by season_id, player_id order by played_at
                     rows between unbounded preceding and unbounded following)
)
select season_id, player_id, max(final) as points,
       min(played_at) filter (where points = final) as reached_at, count(*)::int as matches
from present
group by season_id, player_id;

-- name: out_of_range
select distinct c.line, r.board, f.player_id, r.least, r.most, f.points
from fresh f
join rules r using (season_id)
join counted c on c.season_id = f.season_id and c.player_id = f.player_id and not c.frozen
where f.points not between r.least and r.most
order by c.line;

-- name: settle
update finale.player_total t
set points = f.points::bigint, reached_at = f.reached_at, matches = f.matches
from fresh f
where t.season_id = f.season_id and t.player_id = f.player_id;

-- name: pend
insert into finale.pending as p (season_id, bucket, player_id, version)
select t.season_id, finale.bucket_of(t.player_id), t.player_id, t.version
from fresh f
join finale.player_total t on t.season_id = f.season_id and t.player_id = f.player_id
order by 1, 2, 3
on conflict (season_id, bucket, player_id) do update set version = excluded.version;
