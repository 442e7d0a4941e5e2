-- name: look
-- All that a tick decides by, of every board: a row for each season that has not ended, or one without a season.
-- The definition is told only of the seasons of boards in %(own)s that take results: Redis is kept up to the ledger.
with owing as (
    select season_id from finale.delivery where delivered_at is null
    union all
    select c.season_id from finale.seal c
    where c.kind like 'correction-%%' and not exists (
        select from finale.delivery d
        where d.season_id = c.season_id and d.correction = substring(c.kind from 12)::int
    )
), owes as (
    select distinct board from owing join finale.season using (season_id)
    where state in ('delivered', 'cleaned') and held_at is null
), lacks as (
    select distinct w.board
    from unnest(%(wanted_boards)s::text[], %(wanted)s::text[]) w (board, season)
    left join finale.season h on h.board = w.board and h.season = w.season
    where h.season_id is null
), ends as (
    select board, max(ends_at) as last_end from finale.season
    where board = any(%(boards)s::text[]) and not backfill and not adopted
    group by board
)
select one.name, ends.last_end, lacks.board is not null as lacks, owes.board is not null as owes,
       s.season_id, s.season, s.state, s.starts_at, s.ends_at, s.closes_at, s.keep_until, s.retry_at, s.backfill,
       s.adopted, s.live_key, s.fixed_at, s.frozen_at, s.sealed_at, s.hold_reason, s.hold_detail, s.hold_hint, s.held_at,
       s.attempts, s.last_error, played.*
from unnest(%(boards)s::text[]) one (name)
left join ends on ends.board = one.name
left join lacks on lacks.board = one.name
left join owes on owes.board = one.name
left join finale.season s on s.board = one.name and s.state not in ('cleaned', 'cancelled')
left join lateral (
    select s.definition,
           exists (select from finale.pending p where p.season_id = s.season_id) as pending,
           exists (select from finale.bucket_mark m where m.season_id = s.season_id) as written,
           (select checked_at from finale.live_check c where c.season_id = s.season_id) as checked_at
    where s.state in ('open', 'closing') and s.frozen_at is null and s.board = any(%(own)s::text[])
) played on true
order by one.name, s.ends_at, s.season_id;

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

-- name: known
select season from finale.season where board = %(board)s and season = any(%(ids)s);
