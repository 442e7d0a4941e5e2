-- name: season
select * from finale.season where season_id = %(key)s for update;

-- name: following
select s.*, (s.fixed_at is not null or exists (
    select from finale.player_total t where t.season_id = s.season_id
)) as has_results
from finale.season s
where s.board = %(board)s and s.season_id <> %(key)s and s.state <> 'cancelled'
  and s.starts_at < %(until)s and s.ends_at > %(since)s
order by s.starts_at
for update of s;

-- name: has_results
select exists (select from finale.player_total where season_id = %(key)s) as found;

-- name: move
update finale.season
set starts_at = %(starts_at)s, ends_at = %(ends_at)s, closes_at = %(closes_at)s,
    live_key = case when fixed_at is null then %(live_key)s else live_key end
where season_id = %(key)s
returning fixed_at is not null as fixed;

-- name: cancel
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set state = 'cancelled', retry_at = null
from mine
where s.season_id = mine.season_id and s.state = 'scheduled'
returning s.season_id;

-- name: reopen
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s
set state = 'open', frozen_at = null, attempts = 0, last_error = null, retry_at = null,
    hold_reason = null, hold_detail = null, hold_hint = null, held_at = null
from mine
where s.season_id = mine.season_id and s.state = %(before)s
returning s.season_id;

-- name: forget_results
delete from finale.step_result
where season_id = %(key)s and step in ('close', 'freeze', 'snapshot', 'reconcile');

-- name: take_late
delete from finale.late_result l
using finale.match_result r
where l.season_id = %(key)s and r.source_id = l.source_id and r.match_id = l.match_id and r.player_id = l.player_id
  -- What was played after an early close stays late, unless the season lasts until then again.
  and r.played_at < %(ends_at)s
returning 1 as taken;

-- name: forget_late_voids
delete from finale.late_void where season_id = %(key)s returning 1 as forgotten;

-- name: retry
update finale.season set attempts = 0, retry_at = null
where season_id = %(key)s and held_at is null
returning season_id;

-- name: past
select j.step, (j.detail ->> 'seconds')::float8 as seconds, (r.result -> 'facts' ->> 'rows')::bigint as rows
from finale.journal j
join finale.season s using (season_id)
left join finale.step_result r on r.season_id = j.season_id and r.step = 'snapshot'
where j.event = 'done' and (s.board = %(board)s) = %(own)s and j.detail ->> 'seconds' is not null
order by j.journal_id desc
limit 200;

-- name: last_played
select max(r.played_at) as played_at
from finale.season s
join finale.match_result r on r.source_id = %(source_id)s and r.played_at >= s.starts_at and r.played_at < s.ends_at
where s.season_id = %(key)s;

-- name: cut_short
update finale.season
set ends_at = case when ends_at > %(ends_at)s then %(ends_at)s else ends_at end,
    closes_at = %(ends_at)s
where season_id = %(key)s and state in ('scheduled', 'open', 'closing') and frozen_at is null and starts_at < %(ends_at)s
returning ends_at;

-- name: keep_until_now
update finale.season set keep_until = clock_timestamp()
where season_id = %(key)s
  and (keep_until > clock_timestamp() or (keep_until is null and adopted and state = 'delivered'))
returning season_id;
