-- Which grant each row of a correction changes, for games that keep grants one by one.
alter table finale.correction_grants add column corrects uuid not null;
create index correction_grants_player on finale.correction_grants (season_id, player_id);

create or replace view finale.payable as
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction, null::uuid as corrects
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.grants g using (season_id)
    where d.mode = 'table' and d.correction = 0 and d.delivered_at is not null
    union all
    select s.board, s.season, g.grant_id, g.player_id, g.rule, g.item, g.amount, g.position, g.rank, d.delivered_at,
           d.correction, g.corrects
    from finale.delivery d
    join finale.season s using (season_id)
    join finale.correction_grants g using (season_id, correction)
    where d.mode = 'table' and d.delivered_at is not null;
