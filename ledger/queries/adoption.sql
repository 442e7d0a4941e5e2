-- name: of_key
select board, season, state from finale.season
where live_key = %(live_key)s and state not in ('cleaned', 'cancelled')
limit 1;

-- name: begin_anew
update finale.season s
set state = 'frozen', fixed_at = null, attempts = 0, last_error = null,
    hold_reason = null, hold_detail = null, hold_hint = null, held_at = null,
    starts_at = %(starts_at)s, ends_at = %(ends_at)s, closes_at = %(closes_at)s
where s.season_id = %(key)s and s.adopted and s.state in ('frozen', 'snapshotted', 'reconciled')
  and not exists (select from finale.seal where seal.season_id = s.season_id)
returning s.season_id;

-- name: forget_totals
delete from finale.player_total where season_id = %(key)s;

-- name: forget_pending
delete from finale.pending where season_id = %(key)s;

-- name: freeze
update finale.season
set state = 'frozen', adopted = true, frozen_at = coalesce(frozen_at, clock_timestamp())
where season_id = %(key)s;
