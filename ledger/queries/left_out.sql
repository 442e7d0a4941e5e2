-- name: late
select m.match_id, m.player_id, m.points, m.played_at, l.recorded_at
from finale.late_result l
join finale.match_result m using (source_id, match_id, player_id)
where l.season_id = %(key)s and (%(player)s::bytea is null or l.player_id = %(player)s)
order by l.recorded_at, m.match_id, m.player_id
limit %(limit)s;

-- name: late_count
select count(*) as count from finale.late_result
where season_id = %(key)s and (%(player)s::bytea is null or player_id = %(player)s);

-- name: voided
select m.match_id, m.player_id, m.points, m.played_at, w.who, w.because, w.voided_at,
       v.season_id is not null as after_freeze
from finale.match_result m
left join finale.late_void v
  on v.season_id = %(key)s and v.source_id = m.source_id and v.match_id = m.match_id and v.player_id = m.player_id
left join lateral (
    select who, because, voided_at from finale.void o
    where o.source_id = m.source_id and o.match_id = m.match_id and o.player_id in ('', m.player_id)
    order by o.voided_at limit 1
) w on true
where m.source_id = %(source_id)s and m.voided
  and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s and finale.matches_filter(m.attributes, %(wanted)s)
  and (%(player)s::bytea is null or m.player_id = %(player)s)
order by w.voided_at, m.match_id, m.player_id
limit %(limit)s;

-- name: voided_count
select count(*) as count from finale.match_result m
where m.source_id = %(source_id)s and m.voided
  and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s and finale.matches_filter(m.attributes, %(wanted)s)
  and (%(player)s::bytea is null or m.player_id = %(player)s);

-- name: set_aside
select given ->> 'match_id' as match_id, given ->> 'points' as points, given, reason, origin, line, played_at, recorded_at,
       -- Where the row was read, its player stands as PostgreSQL escapes bytes; else as it was given.
       case when played_at is null then convert_to(given ->> 'player_id', 'UTF8')
            else decode(given ->> 'player_id', 'escape') end as player_id
from finale.set_aside
where source_id = %(source_id)s and kind = %(kind)s
  -- Of a row that could not be read nobody knows the season: every board of the source tells it.
  and (played_at is null or (
    finale.matches_filter(case when jsonb_typeof(given -> 'attributes') = 'object' then given -> 'attributes' end,
                          %(wanted)s)
    and (%(starts_at)s::timestamptz is null or (played_at >= %(starts_at)s and played_at < %(ends_at)s))
  ))
  and (%(player)s::bytea is null or %(player)s = case
    when played_at is null then convert_to(given ->> 'player_id', 'UTF8')
    else decode(given ->> 'player_id', 'escape')
  end)
-- File by file as they came, each in its own order, whichever rule refused the line.
order by min(recorded_at) over (partition by origin), origin, line, recorded_at, fingerprint
limit %(limit)s;

-- name: set_aside_count
select count(*) as count
from finale.set_aside
where source_id = %(source_id)s and kind = %(kind)s
  and (played_at is null or (
    finale.matches_filter(case when jsonb_typeof(given -> 'attributes') = 'object' then given -> 'attributes' end,
                          %(wanted)s)
    and (%(starts_at)s::timestamptz is null or (played_at >= %(starts_at)s and played_at < %(ends_at)s))
  ))
  and (%(player)s::bytea is null or %(player)s = case
    when played_at is null then convert_to(given ->> 'player_id', 'UTF8')
    else decode(given ->> 'player_id', 'escape')
  end);
