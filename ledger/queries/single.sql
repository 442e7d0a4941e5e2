-- name: take
with given as (
    select *
    from jsonb_to_recordset(%(rules)s) as r (
        season_id int, starts_at timestamptz, ends_at timestamptz, wanted jsonb,
        aggregate text, descending boolean, least bigint, most bigint, fixed_at timestamptz
    )
), there as (
    -- As seasons.of_source has them.
    select s.* from finale.season s
    where s.definition ->> 'source' = %(source)s and s.definition ->> 'ledger' = 'own' and s.state <> 'cancelled'
      and s.starts_at <= %(played_at)s and s.ends_at > %(played_at)s
), known as (
    select (select count(*) from there) = (select count(*) from given) and not exists (
        select from given g
        where not exists (
            select from there t
            where t.season_id = g.season_id and t.starts_at = g.starts_at and t.ends_at = g.ends_at
              and t.fixed_at = g.fixed_at
        )
    ) as as_known
), rules as (
    select g.* from given g where finale.matches_filter(%(attributes)s::jsonb, g.wanted)
), counting as (
    select r.* from rules r join there s using (season_id)
    where s.frozen_at is null and s.pruned_at is null and s.state in ('scheduled', 'open', 'closing')
), taken as (
    insert into finale.match_result (source_id, match_id, player_id, points, played_at, attributes)
    select %(source_id)s, %(match_id)s, %(player_id)s, %(points)s, %(played_at)s, %(attributes)s::jsonb
    where (select as_known from known) and %(played_at)s <= clock_timestamp() + %(ahead)s
      and (select count(*) from counting) = (select count(*) from rules) and exists (select from rules)
      and not exists (
        select from finale.void v
        where v.source_id = %(source_id)s and v.match_id = %(match_id)s and v.player_id in ('', %(player_id)s)
    )
    on conflict do nothing
    returning player_id, points, played_at
), added as (
    insert into finale.player_total as t
        (season_id, player_id, points, reached_at, matches, version, first_at, last_at, highest, lowest)
    select c.season_id, n.player_id, n.points, n.played_at, 1, 1, n.played_at, n.played_at, n.points, n.points
    from taken n cross join counting c
    -- As a batch locks them, one statement an aggregate, so that neither waits for the other in turn.
    order by array_position('{sum,last,best}', c.aggregate), case when c.aggregate = 'best' then c.descending end desc,
             c.season_id
    -- As counting.add_sum, add_last and add_best do for many; what they leave to the recount is left here too.
    on conflict (season_id, player_id) do update
    set points = case (select aggregate from counting c where c.season_id = t.season_id)
            when 'sum' then t.points + excluded.points
            when 'last' then excluded.points
            else case when (select descending from counting c where c.season_id = t.season_id)
                      then greatest(t.points, excluded.points) else least(t.points, excluded.points) end
        end,
        reached_at = case (select aggregate from counting c where c.season_id = t.season_id)
            when 'sum' then case when excluded.points = 0 then t.reached_at else excluded.reached_at end
            when 'last' then case when excluded.points = t.points then t.reached_at else excluded.reached_at end
            else case when excluded.points = t.points then least(t.reached_at, excluded.reached_at)
                      when (excluded.points > t.points) = (
                          select descending from counting c where c.season_id = t.season_id
                      ) then excluded.reached_at
                      else t.reached_at end
        end,
        matches = t.matches + 1,
        version = t.version + 1,
        first_at = least(t.first_at, excluded.first_at),
        last_at = greatest(t.last_at, excluded.last_at),
        highest = greatest(t.highest, excluded.points + case (
            select aggregate from counting c where c.season_id = t.season_id
        ) when 'sum' then t.points else 0 end),
        lowest = least(t.lowest, excluded.points + case (
            select aggregate from counting c where c.season_id = t.season_id
        ) when 'sum' then t.points else 0 end)
    where case (select aggregate from counting c where c.season_id = t.season_id)
        when 'sum' then excluded.first_at > t.last_at
             and (excluded.points = 0 or t.points + excluded.points not between t.lowest and t.highest)
        when 'last' then excluded.first_at > t.last_at
             and (excluded.points = t.points or excluded.points not between t.lowest and t.highest)
        else true
    end
    returning season_id, player_id, points
), pended as (
    insert into finale.pending (season_id, bucket, players)
    select season_id, finale.bucket_of(player_id), array[player_id] from added
)
select (select as_known from known) as as_known, (select count(*) from rules) as wanted,
       (select count(*) from added a join counting c using (season_id) where a.points between c.least and c.most) as counted,
       (select coalesce(array_agg(season_id), '{}') from added) as seasons;
