-- name: source
insert into finale.source (name) values (%(name)s) on conflict (name) do nothing;

-- name: source_id
select source_id from finale.source where name = %(name)s;

-- name: staging
create temp table staged (
    line       bigint not null,
    match_id   text collate "C" not null,
    player_id  bytea not null,
    points     bigint not null,
    played_at  timestamptz not null,
    attributes jsonb,
    verdict    text,
    reason     text
) on commit drop;

-- name: copy
copy staged (line, match_id, player_id, points, played_at, attributes) from stdin;

-- name: refuse_future
update staged set verdict = 'refused', reason = 'played_at lies in the future of PostgreSQL''s clock'
where played_at > %(until)s;

-- name: refuse_pruned
-- Whatever a pruned season takes: any other that takes it was cleaned by then, and could only name it late, while the
-- prune moves the results that it has read.
update staged s
set verdict = 'refused', reason = 'the results of that season were pruned: they are in the archive'
where verdict is null
  and (select bool_or(pruned) from rules)
  and exists (
    select
        from slots join rules r using (season_id)
        where slots.slot = width_bucket(s.played_at, (select edges from edges))
          and finale.matches_filter(s.attributes, r.wanted) and r.pruned
  );

-- name: refuse_homeless
update staged s
set verdict = 'refused', reason = 'no season of any board takes results played at that time'
where verdict is null
  and exists (select from unnest(%(filters)s::jsonb[]) as wanted where finale.matches_filter(s.attributes, wanted))
  and not exists (
    select
        from slots join rules r using (season_id)
        where slots.slot = width_bucket(s.played_at, (select edges from edges))
          and finale.matches_filter(s.attributes, r.wanted)
  )
  and not exists (
    select from jsonb_to_recordset(%(gaps)s) as g (starts_at timestamptz, ends_at timestamptz, wanted jsonb)
    where s.played_at >= g.starts_at and s.played_at < g.ends_at and finale.matches_filter(s.attributes, g.wanted)
  );

-- name: closed_early
-- From when until when results of a season that was closed early are late: until its planned end, or the next season.
select s.*, least(early.planned_end, (
    select min(n.starts_at) from finale.season n
    where n.board = s.board and n.starts_at >= s.ends_at and n.season_id <> s.season_id and n.state <> 'cancelled'
)) as late_until
from finale.season s
cross join lateral (
    select max((j.detail ->> 'planned_end')::timestamptz) as planned_end
    from finale.journal j where j.season_id = s.season_id and j.event = 'closed early'
) early
where s.definition ->> 'source' = %(source)s and s.definition ->> 'ledger' = 'own' and s.state <> 'cancelled'
  and s.pruned_at is null and s.ends_at <= %(last)s and early.planned_end > s.ends_at
  and early.planned_end > %(first)s;

-- name: late_for_closed_early
insert into counted (season_id, match_id, player_id, points, played_at, frozen)
select g.season_id, c.match_id, c.player_id, c.points, c.played_at, true
from (select distinct match_id, player_id, points, played_at from counted) c
join finale.match_result r
  on r.source_id = %(source_id)s and r.match_id = c.match_id and r.player_id = c.player_id
join jsonb_to_recordset(%(gaps)s) as g (season_id int, starts_at timestamptz, ends_at timestamptz, wanted jsonb)
  on c.played_at >= g.starts_at and c.played_at < g.ends_at and finale.matches_filter(r.attributes, g.wanted);

-- name: counted_somewhere
-- What a season takes, if only as late, is not what no board counts.
delete from counted c
where c.season_id is null
  and exists (
    select from counted o
    where o.match_id = c.match_id and o.player_id = c.player_id and o.season_id is not null
);

-- name: refuse_voided
update staged s
set verdict = 'refused',
    reason = format('the match was voided by %%s on %%s: %%s', v.who,
                    to_char(v.voided_at at time zone 'UTC', 'YYYY-MM-DD'), v.because)
from finale.void v
where s.verdict is null
  and v.source_id = %(source_id)s and v.match_id = s.match_id and v.player_id in ('', s.player_id)
  and not exists (
    select from finale.match_result r
    where r.source_id = %(source_id)s and r.match_id = s.match_id and r.player_id = s.player_id
);

-- name: read_states
update rules r set frozen = s.frozen, pruned = s.pruned
from (
    select season_id, pruned_at is not null as pruned,
           frozen_at is not null or state not in ('scheduled', 'open', 'closing') as frozen
    from finale.season
) s
where s.season_id = r.season_id and (s.frozen or s.pruned);

-- name: eligible
-- How many there are, and whether the ledger has one of the first, the middle and the last: they are then repeats, likely.
select count(*) as count, exists (
    select
    from staged s
    join finale.match_result r
      on r.source_id = %(source_id)s and r.match_id = s.match_id and r.player_id = s.player_id
    where s.verdict is null and s.line = any(%(looked_at)s::bigint[])
) as known
from staged where verdict is null;

-- name: insert_new
with taken as (
    -- use: inserted
    returning match_id, player_id, points, played_at, attributes
), kept as (
    -- use: counted
)
select count(*) as count from taken;

-- name: insert_unless_known
with taken as (
    -- use: inserted
    on conflict do nothing
    returning match_id, player_id, points, played_at, attributes
), kept as (
    -- use: counted
)
select count(*) as count from taken;

-- name: inserted
    insert into finale.match_result (source_id, match_id, player_id, points, played_at, attributes)
    select %(source_id)s, match_id, player_id, points, played_at, attributes
    from staged where verdict is null
    -- In one order, so that no two importers wait for each other; of equal keys the first line is taken.
    order by match_id, player_id, line

-- name: counted
    insert into counted (season_id, match_id, player_id, points, played_at, frozen)
    select r.season_id, t.match_id, t.player_id, t.points, t.played_at, r.frozen
    from taken t
    left join lateral (
        select r.*
        from slots join rules r using (season_id)
        where slots.slot = width_bucket(t.played_at, (select edges from edges))
          and finale.matches_filter(t.attributes, r.wanted)
    ) r on true

-- name: compare_known
with fresh_keys as (
    select distinct match_id, player_id, true as fresh from counted
), given as (
    select s.line, s.match_id, s.player_id, s.points, s.played_at, s.attributes, k.fresh,
           min(s.line) over (partition by s.match_id, s.player_id) as first
    from staged s left join fresh_keys k on k.match_id = s.match_id and k.player_id = s.player_id
    where s.verdict is null
), known as (
    select g.line, g.first, g.fresh, r.points,
           to_char(r.played_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as played,
           r.points = g.points and r.played_at = g.played_at and r.attributes is not distinct from g.attributes as same
    from given g
    join finale.match_result r
      on r.source_id = %(source_id)s and r.match_id = g.match_id and r.player_id = g.player_id
    where g.fresh is null or g.line <> g.first
)
update staged s
set verdict = case when k.same then 'repeated' else 'conflict' end,
    reason = case when k.same then null
                  when k.fresh then format('line %%s gives the same match and player other values', k.first)
                  else format('the ledger has this match and player with %%s points played at %%s', k.points, k.played)
             end
from known k
where k.line = s.line;

-- name: late
insert into finale.late_result (season_id, source_id, match_id, player_id)
select season_id, %(source_id)s, match_id, player_id from counted where frozen
order by season_id, match_id, player_id
on conflict do nothing;

-- name: lines_of
select s.line, b.number, c.points
from unnest(%(seasons)s::int[], %(players)s::bytea[], %(numbers)s::int[]) as b (season_id, player_id, number)
join counted c on c.season_id = b.season_id and c.player_id = b.player_id and not c.frozen
join staged s on s.match_id = c.match_id and s.player_id = c.player_id and s.verdict is null
order by s.line;

-- name: refuse_lines
update staged s set verdict = 'refused', reason = w.reason
from unnest(%(lines)s::bigint[], %(reasons)s::text[]) as w (line, reason)
where w.line = s.line;

-- name: set_aside
insert into finale.set_aside (source_id, fingerprint, kind, reason, given, origin, line, played_at)
select %(source_id)s, sha256(convert_to(kind || given::text, 'UTF8')) as fingerprint, kind, reason, given, %(origin)s,
       line, played_at
from (
    select verdict as kind, reason, line, played_at,
           jsonb_build_object('match_id', match_id, 'player_id', encode(player_id, 'escape'), 'points', points::text,
                              'played_at', to_char(played_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              'attributes', attributes) as given
    from staged where verdict in ('conflict', 'refused')
    union all
    select 'refused', reason, line, null, given
    from unnest(%(reasons)s::text[], %(lines)s::bigint[], %(givens)s::jsonb[]) as bad (reason, line, given)
) aside
order by fingerprint, line
on conflict do nothing;

-- name: verdicts
select verdict, count(*) as count from staged where verdict is not null group by verdict;

-- name: outcome
select count(distinct (match_id, player_id)) filter (where frozen) as late,
       count(*) filter (where season_id is null) as uncounted,
       coalesce(array_agg(distinct season_id) filter (where not frozen), '{}') as seasons
from counted;

-- name: remarks
select s.line, s.verdict, s.reason from staged s
where s.verdict in ('conflict', 'refused')
order by s.line limit %(limit)s;

-- name: late_remarks
select s.line, b.board, c.played_at >= b.ends_at as early from counted c
join finale.season b using (season_id)
join staged s on s.match_id = c.match_id and s.player_id = c.player_id and s.verdict is null
where c.frozen order by s.line, b.board limit %(limit)s;
