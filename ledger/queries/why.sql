-- name: results
select count(*) as all_boards,
       count(*) filter (where matching and within) as here,
       count(*) filter (where matching and within and voided) as voided,
       count(*) filter (where within and not matching) as filtered,
       count(*) filter (where matching and not within) as elsewhen
from (
    select m.voided, finale.matches_filter(m.attributes, %(wanted)s) as matching,
           m.played_at >= %(starts_at)s and m.played_at < %(ends_at)s as within
    from finale.match_result m
    where m.source_id = %(source_id)s and m.player_id = %(player)s
) r;

-- name: total
select points, reached_at, matches from finale.player_total where season_id = %(key)s and player_id = %(player)s;

-- name: other_boards
select s.board, s.season, t.points
from finale.player_total t
join finale.season s using (season_id)
where t.player_id = %(player)s and s.season_id <> %(key)s
  and s.definition ->> 'source' = %(source)s and s.starts_at < %(ends_at)s and s.ends_at > %(starts_at)s
order by s.board, s.starts_at limit 20;

-- name: grants
select grant_id, rule, item, amount, position, rank from finale.grants
where season_id = %(key)s and grant_id = any(%(ids)s::uuid[]) order by position, rule, item;
