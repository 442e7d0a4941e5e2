-- name: exists
select to_regclass(%(name)s) is not null as found;

-- name: attached
select exists (
    select from pg_inherits where inhrelid = to_regclass(%(name)s) and inhparent = 'finale.grants'::regclass
) as found;

-- name: items
select item, count(*) as rows, sum(amount)::text as amount from finale.grants where season_id = %(key)s group by item order by item;

-- name: tiers
select rule, item, count(*) as grants, sum(amount)::text as amount, min(position) as first
from finale.grants where season_id = %(key)s group by rule, item order by first, rule, item;

-- name: players
select count(distinct player_id) as players, count(*) as rows from finale.grants where season_id = %(key)s;
