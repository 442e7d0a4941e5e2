-- name: rules
create temp table rules on commit drop as
select * from jsonb_to_recordset(%(rules)s) as r (
    season_id int, board text, starts_at timestamptz, ends_at timestamptz, wanted jsonb,
    aggregate text, descending boolean, least bigint, most bigint, frozen boolean, pruned boolean
);

-- name: staging
-- Between two neighbouring edges no season begins or ends: a result's slot, found by halving, tells its seasons.
create temp table edges on commit drop as
select array_agg(distinct at order by at) as edges
from (select starts_at as at from rules union all select ends_at from rules) e;
create temp table slots on commit drop as
select e.slot::int as slot, r.season_id
from rules r cross join edges cross join unnest(edges.edges) with ordinality as e (at, slot)
where e.at >= r.starts_at and e.at < r.ends_at;
create temp table counted (
    season_id int, match_id text collate "C", player_id bytea, points bigint, played_at timestamptz, frozen boolean
) on commit drop;
create temp table fresh (season_id int, player_id bytea, points bigint) on commit drop;
create temp table recounted (
    season_id int, player_id bytea, points numeric, reached_at timestamptz, matches int,
    first_at timestamptz, last_at timestamptz, highest numeric, lowest numeric
) on commit drop;

-- name: add_sum
with instants as (
    select c.season_id, c.player_id, c.played_at, sum(c.points) as points, count(*) as matches
    from counted c join rules r using (season_id)
    where not c.frozen and r.aggregate = 'sum'
    group by 1, 2, 3
), held as (
    -- What the matches of the batch alone come to at each instant, and in the end.
    select *, sum(points) over upto as held, sum(points) over (partition by season_id, player_id) as final
    from instants
    window upto as (partition by season_id, player_id order by played_at)
-- use: added

-- name: add_last
with instants as (
    -- Of the matches of one instant the one with the greatest id, in byte order, is the last.
    select distinct on (c.season_id, c.player_id, c.played_at)
           c.season_id, c.player_id, c.played_at, c.points as held,
           count(*) over (partition by c.season_id, c.player_id, c.played_at) as matches
    from counted c join rules r using (season_id)
    where not c.frozen and r.aggregate = 'last'
    order by c.season_id, c.player_id, c.played_at, c.match_id desc
), held as (
    select *, first_value(held) over (partition by season_id, player_id order by played_at desc) as final
    from instants
-- use: added

-- name: added
-- From what is held at each instant to the totals. What it is added to is the present total, or nothing for "last".
), batch as (
    select season_id, player_id, min(played_at) as first_at, max(played_at) as last_at, min(final) as points,
           min(played_at) filter (where held = final) as reached_at, sum(matches)::int as matches,
           max(held) as highest, min(held) as lowest
    from held
    group by 1, 2
), added as (
    insert into finale.player_total as t
        (season_id, player_id, points, reached_at, matches, version, first_at, last_at, highest, lowest)
    select season_id, player_id, points, reached_at, matches, 1, first_at, last_at, highest, lowest
    from batch
    -- Sums that no int8 could hold are left to the recount, which refuses them.
    where highest < %(large)s and lowest > -%(large)s::numeric
    order by season_id, player_id
    on conflict (season_id, player_id) do update
    set points = t.points * %(adds)s::int + excluded.points,
        reached_at = case when t.points * %(adds)s::int + excluded.points = t.points then t.reached_at
                          else excluded.reached_at end,
        matches = t.matches + excluded.matches,
        version = t.version + 1,
        last_at = excluded.last_at,
        highest = greatest(t.highest, t.points * %(adds)s::int + excluded.highest),
        lowest = least(t.lowest, t.points * %(adds)s::int + excluded.lowest)
    -- Exact only if all are later than what was counted, and these points were never held before, or are held now.
    where excluded.first_at > t.last_at
      and (t.points * %(adds)s::int + excluded.points = t.points
           or t.points * %(adds)s::int + excluded.points not between t.lowest and t.highest)
    returning season_id, player_id, points
)
insert into fresh select season_id, player_id, points from added;

-- name: add_best
with ranked as (
    select c.season_id, c.player_id, c.played_at, c.points,
           case when %(descending)s then max(c.points) over same else min(c.points) over same end as best
    from counted c join rules r using (season_id)
    where not c.frozen and r.aggregate = 'best' and r.descending = %(descending)s
    window same as (partition by c.season_id, c.player_id)
), batch as (
    select season_id, player_id, min(best) as points, min(played_at) filter (where points = best) as reached_at,
           count(*)::int as matches, min(played_at) as first_at, max(played_at) as last_at,
           max(points) as highest, min(points) as lowest
    from ranked
    group by 1, 2
), added as (
    insert into finale.player_total as t
        (season_id, player_id, points, reached_at, matches, version, first_at, last_at, highest, lowest)
    select season_id, player_id, points, reached_at, matches, 1, first_at, last_at, highest, lowest
    from batch
    order by season_id, player_id
    -- The best of all is the better of two, and was first held with its earliest match, in whatever order they come.
    on conflict (season_id, player_id) do update
    set points = case when %(descending)s then greatest(t.points, excluded.points)
                      else least(t.points, excluded.points) end,
        reached_at = case when excluded.points = t.points then least(t.reached_at, excluded.reached_at)
                          when (excluded.points > t.points) = %(descending)s then excluded.reached_at
                          else t.reached_at end,
        matches = t.matches + excluded.matches,
        version = t.version + 1,
        first_at = least(t.first_at, excluded.first_at),
        last_at = greatest(t.last_at, excluded.last_at),
        highest = greatest(t.highest, excluded.highest),
        lowest = least(t.lowest, excluded.lowest)
    returning season_id, player_id, points
)
insert into fresh select season_id, player_id, points from added;

-- name: left_to_recount
create temp table touched on commit drop as
select season_id, player_id from counted where season_id is not null and not frozen
except
select season_id, player_id from fresh;

-- name: how_many_touched
select count(*) as count from touched;

-- name: touch
insert into finale.player_total as t (season_id, player_id, points, reached_at, matches, version)
select season_id, player_id, 0, 'epoch', 0, 1
from touched
order by season_id, player_id
on conflict (season_id, player_id) do update set version = t.version + 1;

-- name: recount
with matches as (
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
    ) and (not m.voided or %(late_voids)s and exists (
        select from finale.late_void v
        where v.season_id = t.season_id and v.source_id = m.source_id
          and v.match_id = m.match_id and v.player_id = m.player_id
    ))
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
insert into recounted
select season_id, player_id, max(final), min(played_at) filter (where points = final), count(*)::int,
       min(played_at), max(played_at), max(points), min(points)
from present
group by season_id, player_id;

-- name: out_of_range
select f.season_id, r.board, r.aggregate, f.player_id, r.least, r.most, f.points
from (select season_id, player_id, points from fresh union all select season_id, player_id, points from recounted) f
join rules r using (season_id)
where f.points not between r.least and r.most
order by f.season_id, f.player_id;

-- name: settle
with settled as (
    update finale.player_total t
    set points = f.points::bigint, reached_at = f.reached_at, matches = f.matches,
        first_at = f.first_at, last_at = f.last_at,
        highest = least(f.highest, %(large)s)::bigint, lowest = greatest(f.lowest, -%(large)s::numeric)::bigint
    from recounted f
    where t.season_id = f.season_id and t.player_id = f.player_id
    returning t.season_id, t.player_id, t.points
)
insert into fresh select season_id, player_id, points from settled;

-- name: remove
with gone as (
    delete from finale.player_total t
    using touched g
    where t.season_id = g.season_id and t.player_id = g.player_id
      and not exists (select from recounted f where f.season_id = g.season_id and f.player_id = g.player_id)
    returning t.season_id, t.player_id
), noted as (
    insert into finale.removed_player (season_id, player_id)
    select season_id, player_id from gone order by 1, 2
    on conflict do nothing
)
insert into fresh select season_id, player_id, null from gone;

-- name: pend
insert into finale.pending (season_id, bucket, players)
select season_id, finale.bucket_of(player_id) as bucket, array_agg(player_id)
-- So that an entry has a thousand players or so, however large the board.
from (select *, row_number() over () / 64000 as part from fresh) f
group by season_id, bucket, part;
