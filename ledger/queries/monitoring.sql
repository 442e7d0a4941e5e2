-- name: seasons
select s.board, s.season, s.state, s.starts_at, s.ends_at, s.closes_at, s.keep_until, s.retry_at, s.attempts,
       s.held_at, s.backfill, s.adopted,
       l.acquired_at as leased_at, l.expires_at > clock_timestamp() as leased,
       -- Between two turns of a delivery nobody has the lease; its target took what was sent last.
       l.acquired_at > clock_timestamp() - interval '5 minutes' and exists (
           select from finale.delivery d
           where s.state = 'rewarded' and d.season_id = s.season_id and d.delivered_at is null and d.failures = 0
       ) as delivering,
       (snapshot.result -> 'facts' ->> 'rows')::bigint as rows,
       (coalesce(reconcile.result, drift.result) ->> 'drift')::bigint as drift
from finale.season s
left join finale.lease l using (season_id)
left join finale.step_result snapshot on snapshot.season_id = s.season_id and snapshot.step = 'snapshot'
left join finale.step_result reconcile on reconcile.season_id = s.season_id and reconcile.step = 'reconcile'
left join finale.step_result drift on drift.season_id = s.season_id and drift.step = 'drift'
where s.board = any(%(boards)s) and s.state not in ('cleaned', 'cancelled')
order by s.board, s.starts_at;

-- name: claim_holds
-- Each hold is claimed once, whoever else looks at the same time: an update that has waited looks again.
update finale.season
set hold_told_at = held_at
where board = any(%(boards)s) and held_at is not null and hold_told_at is distinct from held_at
returning board, season, state, hold_reason, hold_hint;

-- name: steps
-- The last time that each step was taken on each board.
select distinct on (s.board, j.step) s.board, j.step, j.at, (j.detail ->> 'seconds')::float8 as seconds
from finale.journal j
join finale.season s using (season_id)
where s.board = any(%(boards)s) and j.event = 'done'
order by s.board, j.step, j.journal_id desc;

-- name: grants
select s.board, o.state, count(*) as grants
from finale.outbox o
join finale.season s using (season_id)
where s.board = any(%(boards)s)
group by s.board, o.state;

-- name: delivered
select s.board, sum(d.grants)::bigint as grants
from finale.delivery d
join finale.season s using (season_id)
where s.board = any(%(boards)s) and d.mode = 'table'
group by s.board;
