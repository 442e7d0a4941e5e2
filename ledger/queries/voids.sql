-- name: results
select count(*) as results, count(*) filter (where voided) as voided,
       min(played_at) as first, max(played_at) as last
from finale.match_result
where source_id = %(source_id)s and match_id = %(match_id)s
  and (%(player_id)s::bytea is null or player_id = %(player_id)s);

-- name: standing
select who, because, voided_at from finale.void
where source_id = %(source_id)s and match_id = %(match_id)s and player_id in ('', %(player_id)s)
order by voided_at limit 1;

-- name: note
insert into finale.void (source_id, match_id, player_id, who, because)
values (%(source_id)s, %(match_id)s, coalesce(%(player_id)s::bytea, ''), %(who)s, %(because)s)
on conflict do nothing;

-- name: pruned
select r.board, s.season from rules r join finale.season s using (season_id) where r.pruned order by 1, 2 limit 1;

-- name: mark
with marked as (
    update finale.match_result set voided = true
    where source_id = %(source_id)s and match_id = %(match_id)s
      and (%(player_id)s::bytea is null or player_id = %(player_id)s) and not voided
    returning match_id, player_id, points, played_at, attributes
)
insert into counted (season_id, match_id, player_id, points, played_at, frozen)
select r.season_id, m.match_id, m.player_id, m.points, m.played_at, r.frozen
from marked m
join rules r on m.played_at >= r.starts_at and m.played_at < r.ends_at
            and finale.matches_filter(m.attributes, r.wanted)
where not exists (
    select from finale.late_result l
    where l.season_id = r.season_id and l.source_id = %(source_id)s
      and l.match_id = m.match_id and l.player_id = m.player_id
);

-- name: late
insert into finale.late_void (season_id, source_id, match_id, player_id)
select season_id, %(source_id)s, match_id, player_id from counted where frozen
order by season_id, match_id, player_id
on conflict do nothing;

-- name: touched
create temp table touched on commit drop as
select distinct season_id, player_id from counted where not frozen;

-- name: seasons
select c.season_id, r.board, s.season, c.frozen, count(distinct c.player_id) as players
from counted c join rules r using (season_id) join finale.season s using (season_id)
group by c.season_id, r.board, s.season, c.frozen
order by r.board, s.season;

-- name: after_freeze
select m.match_id, m.player_id, m.points, m.played_at, m.attributes, w.who, w.because, v.recorded_at as voided_at
from finale.late_void v
join finale.match_result m using (source_id, match_id, player_id)
left join lateral (
    select who, because from finale.void o
    where o.source_id = v.source_id and o.match_id = v.match_id and o.player_id in ('', v.player_id)
    order by o.voided_at limit 1
) w on true
where v.season_id = %(key)s
order by m.match_id, m.player_id;
