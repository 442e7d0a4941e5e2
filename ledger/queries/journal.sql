-- name: write
insert into finale.journal (season_id, event, step, fence, who, detail)
values (%(key)s, %(event)s, %(step)s, %(fence)s, %(who)s, %(detail)s);

-- name: of_season
select at, event, step, fence, who, detail from finale.journal where season_id = %(key)s order by journal_id;

-- name: put_result
insert into finale.step_result (season_id, step, result, fence)
select season_id, %(step)s, %(result)s, fence
from (select season_id, fence from finale.lease where season_id = %(key)s and fence = %(fence)s for key share) mine
on conflict (season_id, step) do update
set result = excluded.result, fence = excluded.fence, finished_at = clock_timestamp()
returning season_id;

-- name: results
select step, result, finished_at from finale.step_result where season_id = %(key)s;

-- name: finished
select season_id, finished_at from finale.step_result where step = %(step)s;
