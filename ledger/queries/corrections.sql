-- name: loaded
select item, count(*) as rows, sum(amount)::text as amount from finale.correction_grants
where season_id = %(key)s and correction = %(correction)s group by item order by item;

-- name: unfinished
select s.season, substring(c.kind from 12)::int as correction
from finale.seal c
join finale.season s using (season_id)
where s.board = %(board)s and c.kind like 'correction-%%' and (%(held)s or s.held_at is null)
  and not exists (
    select from finale.delivery d
    where d.season_id = c.season_id and d.correction = substring(c.kind from 12)::int
  )
order by s.starts_at, correction;

-- name: undelivered
select count(*) filter (where o.state = 'dead') as dead, count(*) filter (where o.state = 'waiting') as waiting
from finale.correction_grants c
join finale.outbox o on o.season_id = c.season_id and o.correction = 0 and o.grant_id = c.corrects
where c.season_id = %(key)s and c.correction = %(correction)s and o.state <> 'acknowledged';

-- name: of_player
select correction, grant_id, corrects, rule, item, amount, position, rank from finale.correction_grants
where season_id = %(key)s and player_id = %(player)s order by correction, rule, item;

-- name: touched
create temp table touched on commit drop as
select distinct season_id, player_id from finale.late_void where season_id = %(key)s;

-- name: as_frozen
-- What was counted with the late voids; the table is then empty for what is right without them.
create temp table as_frozen on commit drop as select player_id, points, reached_at from recounted;
delete from recounted;

-- name: right_totals
select t.player_id, r.points, r.reached_at, coalesce(r.matches, 0) as matches,
       f.points as frozen_points, f.reached_at as frozen_reached_at
from touched t
left join recounted r using (season_id, player_id)
left join as_frozen f using (player_id)
order by t.player_id;
