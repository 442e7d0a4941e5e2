-- name: last_end
-- Of the seasons that Finale ran itself: what was only imported or adopted does not tell that later ones were played.
select max(ends_at) as ends_at from finale.season where board = %(board)s and not backfill and not adopted;

-- name: wake_ups
select distinct at
from finale.season,
    unnest(array[case when state = 'scheduled' then starts_at end,
                 case when state in ('scheduled', 'open') then ends_at end,
                 case when state in ('scheduled', 'open', 'closing') then closes_at end,
                 keep_until, retry_at]) at
where board = any(%(boards)s) and state not in ('cleaned', 'cancelled')
  and at > clock_timestamp() and at <= clock_timestamp() + %(within)s
order by at;
