-- name: broken
create temp table broken on commit drop as
-- Totals that the season's results do not make: counted in another way than they were, player by player.
with matches as (
    select m.player_id, m.match_id, m.played_at, m.points::numeric as points
    from finale.match_result m
    where m.source_id = %(source_id)s and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s
      and finale.matches_filter(m.attributes, %(wanted)s)
      and not exists (
          select from finale.late_result l
          where l.season_id = %(key)s and l.source_id = m.source_id
            and l.match_id = m.match_id and l.player_id = m.player_id
      )
      and (not m.voided or exists (
          select from finale.late_void v
          where v.season_id = %(key)s and v.source_id = m.source_id
            and v.match_id = m.match_id and v.player_id = m.player_id
      ))
), instants as (
    -- What the matches of one instant come to: they take effect together.
    select player_id, played_at, sum(points) as sum, max(points) as most, min(points) as least,
           (array_agg(points order by match_id desc))[1] as last
    from matches group by player_id, played_at
), held as (
    select player_id, played_at,
           case %(aggregate)s
               when 'sum' then sum(sum) over upto
               when 'best' then case when %(descending)s then max(most) over upto else min(least) over upto end
               else last
           end as points
    from instants
    window upto as (partition by player_id order by played_at)
), recounted as (
    select player_id, (array_agg(points order by played_at desc))[1] as points,
           array_agg(played_at order by played_at) as times, array_agg(points order by played_at) as held
    from held group by player_id
), reached as (
    select player_id, points, times[array_position(held, points)] as reached_at from recounted
)
select coalesce(r.player_id, t.player_id) as player_id,
       t.points::text as total_points, r.points::text as results_points,
       t.reached_at as total_reached_at, r.reached_at as results_reached_at
from reached r
full join (select * from finale.player_total where season_id = %(key)s) t using (player_id)
where r.points is distinct from t.points or r.reached_at is distinct from t.reached_at;

-- name: examples
select *, count(*) over () as count from broken order by player_id limit %(limit)s;

-- name: touched
-- Not of a season that is sealed, whose standings are what they are.
create temp table touched on commit drop as
select s.season_id, b.player_id
from finale.season s cross join broken b
where s.season_id = %(key)s and s.pruned_at is null
  and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled');
