-- name: of_season
select m.match_id, m.player_id, m.points, m.played_at, m.recorded_at, m.attributes,
       case when m.voided then 'voided' when l.season_id is not null then 'late' else 'counted' end as state,
       case when m.voided then format('voided by %%s: %%s', w.who, w.because)
            when l.season_id is not null then 'came after the season was frozen' end as reason
from finale.match_result m
left join finale.late_result l
  on l.season_id = %(key)s and l.source_id = m.source_id and l.match_id = m.match_id and l.player_id = m.player_id
left join lateral (
    select who, because from finale.void o
    where m.voided and o.source_id = m.source_id and o.match_id = m.match_id and o.player_id in ('', m.player_id)
    order by o.voided_at limit 1
) w on true
where m.source_id = %(source_id)s and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s
  and finale.matches_filter(m.attributes, %(wanted)s)
order by m.played_at, m.match_id, m.player_id;

-- name: attributes
select distinct jsonb_object_keys(m.attributes) as name
from finale.match_result m
where m.source_id = %(source_id)s and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s
  and m.attributes is not null and finale.matches_filter(m.attributes, %(wanted)s)
order by 1;

-- name: removable
select count(*) as count from finale.match_result m
where m.source_id = %(source_id)s and m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s
  and finale.matches_filter(m.attributes, %(wanted)s)
  and not exists (
    select from finale.late_void v
    where v.source_id = m.source_id and v.match_id = m.match_id and v.player_id = m.player_id
);

-- name: pruned
-- Seasons whose time is this one's too and whose results have gone, or are going: the earliest first.
select s.* from finale.season s
where s.pruned_at is not null and s.definition ->> 'source' = %(source)s
  and s.starts_at < %(ends_at)s and s.ends_at > %(starts_at)s
  -- What had gone before the season was fixed it has never counted.
  and not exists (
    select from finale.step_result r
    join finale.season mine on mine.season_id = %(key)s and mine.fixed_at > r.finished_at
    where r.season_id = s.season_id and r.step = 'prune' and s.season_id <> %(key)s
)
order by s.pruned_at, s.season_id;

-- name: mark_pruned
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
update finale.season s set pruned_at = coalesce(s.pruned_at, clock_timestamp())
from mine
where s.season_id = mine.season_id and s.state = 'cleaned'
returning s.pruned_at;

-- name: begun
select season_id, pruned_at from finale.season s
where pruned_at is not null
  and not exists (select from finale.step_result r where r.season_id = s.season_id and r.step = 'prune');

-- name: remove
with gone as (
    delete from finale.match_result m
    using unnest(%(matches)s::text[], %(players)s::bytea[]) as w (match_id, player_id)
    where m.source_id = %(source_id)s and m.match_id = w.match_id and m.player_id = w.player_id
      -- What was voided after a freeze is still to be undone by corrections.
      and not exists (
        select from finale.late_void v
        where v.source_id = m.source_id and v.match_id = m.match_id and v.player_id = m.player_id
    )
    returning m.match_id, m.player_id
)
delete from finale.late_result l
using gone g
where l.source_id = %(source_id)s and l.match_id = g.match_id and l.player_id = g.player_id;
