-- name: cut_anew
update finale.season set definition = %(definition)s
where season_id = %(key)s and fixed_at is not null and frozen_at is null
  and state in ('scheduled', 'open', 'closing')
returning season_id;
