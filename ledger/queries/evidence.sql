-- name: matches
select p.player_id, m.match_id, m.points, m.played_at, m.recorded_at, m.late, m.voided
from unnest(%(players)s::bytea[]) as p (player_id)
cross join lateral (
    select r.match_id, r.points, r.played_at, r.recorded_at,
           -- Voided after the freeze, it counts in this season all the same.
           r.voided and not exists (
               select from finale.late_void v
               where v.season_id = %(key)s and v.source_id = r.source_id
                 and v.match_id = r.match_id and v.player_id = r.player_id
           ) as voided,
           exists (
               select from finale.late_result l
               where l.season_id = %(key)s and l.source_id = r.source_id
                 and l.match_id = r.match_id and l.player_id = r.player_id
           ) as late
    from finale.match_result r
    where r.source_id = %(source_id)s and r.player_id = p.player_id
      and r.played_at >= %(starts_at)s and r.played_at < %(ends_at)s
      and finale.matches_filter(r.attributes, %(wanted)s)
    order by r.recorded_at desc, r.match_id desc
    limit %(limit)s
) m
order by p.player_id, m.recorded_at desc, m.match_id desc;

-- name: active_since
select count(distinct r.player_id) as players
from finale.match_result r
where r.source_id = %(source_id)s and r.recorded_at >= %(since)s
  and r.played_at >= %(starts_at)s and r.played_at < %(ends_at)s
  and finale.matches_filter(r.attributes, %(wanted)s);
