-- name: unfixed
select season, starts_at, ends_at from finale.season where season_id = %(key)s and fixed_at is null for update;

-- name: fix
update finale.season
set definition = %(definition)s, live_key = %(live_key)s, fixed_at = clock_timestamp()
where season_id = %(key)s;

-- name: history
insert into counted (season_id, match_id, player_id, points, played_at, frozen)
select %(key)s, match_id, player_id, points, played_at, false
from finale.match_result
where source_id = %(source_id)s and played_at >= %(starts_at)s and played_at < %(ends_at)s and not voided
  and finale.matches_filter(attributes, %(wanted)s);

-- name: touched
-- Whoever played, or has a total that may have to go: all that is counted there is counted anew.
create temp table touched on commit drop as
select %(key)s::int as season_id, m.player_id
from finale.match_result m
where m.source_id = %(source_id)s and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s and not m.voided
  and finale.matches_filter(m.attributes, %(wanted)s)
  and not exists (
    select from finale.late_result l
    where l.season_id = %(key)s and l.source_id = m.source_id
      and l.match_id = m.match_id and l.player_id = m.player_id
)
union
select season_id, player_id from finale.player_total where season_id = %(key)s;

-- name: drop_temporary
drop table if exists pg_temp.rules, pg_temp.edges, pg_temp.slots, pg_temp.counted, pg_temp.fresh,
    pg_temp.recounted, pg_temp.touched;
