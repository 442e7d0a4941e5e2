-- name: accept
insert into finale.drift_acceptance (season_id, difference, report, players, who, because)
values (%(key)s, %(difference)s, %(report)s, %(players)s, %(who)s, %(because)s)
on conflict (season_id, difference) do nothing;

-- name: of_season
select difference, report, players, who, because, accepted_at
from finale.drift_acceptance where season_id = %(key)s order by accepted_at, difference;
