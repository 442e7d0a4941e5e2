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

-- name: drop_temporary
drop table if exists pg_temp.rules, pg_temp.counted, pg_temp.fresh, pg_temp.recounted, pg_temp.touched;
