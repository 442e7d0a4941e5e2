-- name: find
select checked_at, watermark, ledger_cursor, redis_cursor, redis_key, server, rounds, found,
       active_cursor, active_horizon
from finale.live_check where season_id = %(key)s;

-- name: clock
-- Whatever is recorded by a transaction that has not committed yet was recorded after that began.
select clock_timestamp() as now, least(clock_timestamp(), (
    select min(xact_start) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
)) as horizon;

-- name: active
select distinct r.player_id
from finale.match_result r
where r.source_id = %(source_id)s and r.recorded_at >= %(since)s
  and r.played_at >= %(starts_at)s and r.played_at < %(ends_at)s
  -- Without a filter nothing is left to estimate: of very many the first are found along the index, and no more read.
  and (%(wanted)s::jsonb = '{}' or finale.matches_filter(r.attributes, %(wanted)s))
  and (%(cursor)s::bytea is null or r.player_id > %(cursor)s)
order by r.player_id limit %(limit)s;

-- name: slice
select player_id from finale.player_total
where season_id = %(key)s and (%(cursor)s::bytea is null or player_id > %(cursor)s)
order by player_id limit %(limit)s;

-- name: held
select n.player_id, t.points, t.reached_at, t.version, p.player_id is not null as pending
from unnest(%(players)s::bytea[]) with ordinality as n (player_id, at)
left join finale.player_total t on t.season_id = %(key)s and t.player_id = n.player_id
left join (
    select distinct u.player_id from finale.pending w cross join unnest(w.players) as u (player_id)
    where w.season_id = %(key)s
) p on p.player_id = n.player_id
order by n.at;

-- name: record
insert into finale.live_check as c
    (season_id, checked_at, watermark, ledger_cursor, redis_cursor, redis_key, server, rounds, found,
     active_cursor, active_horizon)
values (%(key)s, %(checked_at)s, %(watermark)s, %(ledger_cursor)s, %(redis_cursor)s, %(redis_key)s, %(server)s,
        %(rounds)s, %(found)s, %(active_cursor)s, %(active_horizon)s)
on conflict (season_id) do update
set checked_at = excluded.checked_at, watermark = excluded.watermark, ledger_cursor = excluded.ledger_cursor,
    redis_cursor = excluded.redis_cursor, redis_key = excluded.redis_key, server = excluded.server,
    rounds = excluded.rounds, found = excluded.found,
    active_cursor = excluded.active_cursor, active_horizon = excluded.active_horizon
-- Who was overtaken by another check of the same season records nothing.
where c.checked_at is not distinct from %(seen)s
returning season_id;
