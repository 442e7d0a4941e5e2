-- name: lock_board
select pg_advisory_xact_lock(hashtextextended('finale.board:' || %(board)s, 0));

-- name: installation
select id from finale.installation;

-- name: overlapping
select season, starts_at, ends_at from finale.season
where board = %(board)s and state <> 'cancelled' and season <> %(season)s
  and starts_at < %(ends_at)s and ends_at > %(starts_at)s
order by starts_at limit 1;

-- name: create
insert into finale.season (board, season, state, starts_at, ends_at, closes_at, backfill, definition, live_key)
values (%(board)s, %(season)s, %(state)s, %(starts_at)s, %(ends_at)s, %(closes_at)s, %(backfill)s, %(definition)s, %(live_key)s)
on conflict (board, season) do nothing
returning season_id;

-- name: find
select * from finale.season where board = %(board)s and season = %(season)s;

-- name: of_board
select * from finale.season where board = %(board)s order by starts_at, season_id;

-- name: of_keys
select * from finale.season where season_id = any(%(keys)s::int[]) order by starts_at, season_id;

-- name: unfinished
select * from finale.season where board = %(board)s and state not in ('cleaned', 'cancelled') order by ends_at, season_id;

-- name: all
select * from finale.season order by board, starts_at, season_id;

-- name: of_source
select * from finale.season
where definition ->> 'source' = %(source)s and definition ->> 'ledger' = 'own' and state <> 'cancelled'
  and starts_at <= %(last)s and ends_at > %(first)s
order by season_id;

-- name: unfixed
select * from finale.season
where (definition ->> 'source' = %(source)s or board = any(%(boards)s)) and state = 'scheduled' and fixed_at is null
  and starts_at <= %(last)s and ends_at > %(first)s
order by season_id;

-- name: bounds_between
select season, starts_at, ends_at, state from finale.season
where board = %(board)s and starts_at <= %(last)s and ends_at > %(first)s and state <> 'cancelled'
order by starts_at;

-- name: advance
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set state = %(after)s, attempts = 0, last_error = null, retry_at = null,
    definition = coalesce(%(definition)s, s.definition),
    live_key = coalesce(%(live_key)s, s.live_key),
    sealed_at = coalesce(%(sealed_at)s, s.sealed_at),
    keep_until = coalesce(%(keep_until)s, s.keep_until)
from mine
where s.season_id = mine.season_id and s.state = %(before)s
returning s.season_id;

-- name: mark_frozen
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set frozen_at = coalesce(s.frozen_at, clock_timestamp())
from mine
where s.season_id = mine.season_id and s.state = 'closing'
returning s.frozen_at;

-- name: hold
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set hold_reason = %(reason)s, hold_detail = %(detail)s, hold_hint = %(hint)s, held_at = coalesce(s.held_at, clock_timestamp()),
    attempts = s.attempts + 1, last_error = %(reason)s,
    -- Of an adopted key it stands for a person's "now", which a hold ends: no tick removes the key after a release.
    keep_until = case when s.adopted then null else s.keep_until end
from mine
where s.season_id = mine.season_id
returning s.season_id;

-- name: failed
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set attempts = s.attempts + 1, last_error = %(error)s,
    -- Doubled with each attempt, from a second to five minutes.
    retry_at = clock_timestamp() + least(interval '1 second' * power(2, least(s.attempts, 16)), interval '5 minutes')
from mine
where s.season_id = mine.season_id
returning s.season_id;

-- name: release
update finale.season
set hold_reason = null, hold_detail = null, hold_hint = null, held_at = null, attempts = 0, retry_at = null,
    keep_until = case when adopted then null else keep_until end
where season_id = %(key)s and held_at is not null
returning season_id;

-- name: hold_by_hand
update finale.season
set hold_reason = %(reason)s, hold_detail = '', hold_hint = %(hint)s, held_at = clock_timestamp(),
    keep_until = case when adopted then null else keep_until end
where season_id = %(key)s and held_at is null
returning season_id;

-- name: back_to_frozen
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set state = 'frozen'
from mine
where s.season_id = mine.season_id and s.state in ('frozen', 'snapshotted', 'reconciled')
  and not exists (select from finale.seal where seal.season_id = s.season_id)
returning s.season_id;

-- name: lately_cleaned
select s.*, r.finished_at as cleaned_at
from finale.season s
join finale.step_result r on r.season_id = s.season_id and r.step = 'clean'
where s.state = 'cleaned' and not s.adopted and r.finished_at > %(since)s
  and (s.definition ->> 'freeze' = 'rename' or not exists (
    select from finale.season o where o.live_key = s.live_key and o.state not in ('cleaned', 'cancelled')
))
order by r.finished_at desc
limit %(limit)s;
