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

-- name: analyze
analyze staged;

-- name: refuse_future
update staged set verdict = 'refused', reason = 'played_at lies in the future of PostgreSQL''s clock'
where played_at > %(until)s;

-- name: repeats_within
with ranked as (
    select line, first_value(line) over earlier as first,
           points is distinct from first_value(points) over earlier
           or played_at is distinct from first_value(played_at) over earlier
           or attributes is distinct from first_value(attributes) over earlier as differs
    from staged where verdict is null
    window earlier as (partition by match_id, player_id order by line)
)
update staged s
set verdict = case when r.differs then 'conflict' else 'repeated' end,
    reason = case when r.differs then format('line %%s gives the same match and player other values', r.first) end
from ranked r
where r.line = s.line and r.line <> r.first;

-- name: refuse_homeless
update staged s
set verdict = 'refused', reason = 'no season of any board takes results played at that time'
where verdict is null
  and exists (select from unnest(%(filters)s::jsonb[]) as wanted where finale.matches_filter(s.attributes, wanted))
  and not exists (
    select from rules r
    where s.played_at >= r.starts_at and s.played_at < r.ends_at and finale.matches_filter(s.attributes, r.wanted)
  );

-- name: read_states
update rules r set frozen = true
from finale.season s
where s.season_id = r.season_id
  and (s.frozen_at is not null or s.state not in ('scheduled', 'open', 'closing'));

-- name: insert
with taken as (
    insert into finale.match_result (source_id, match_id, player_id, points, played_at, attributes)
    select %(source_id)s, match_id, player_id, points, played_at, attributes
    from staged where verdict is null
    order by match_id, player_id
    on conflict do nothing
    returning match_id, player_id
)
update staged s set verdict = 'new'
from taken t
where s.verdict is null and t.match_id = s.match_id and t.player_id = s.player_id;

-- name: compare_known
update staged s
set verdict = case when k.same then 'repeated' else 'conflict' end,
    reason = case when not k.same
             then format('the ledger has this match and player with %%s points played at %%s', k.points, k.played) end
from (
    select s.line, r.points,
           to_char(r.played_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as played,
           r.points = s.points and r.played_at = s.played_at and r.attributes is not distinct from s.attributes as same
    from staged s
    join finale.match_result r
      on r.source_id = %(source_id)s and r.match_id = s.match_id and r.player_id = s.player_id
    where s.verdict is null
) k
where k.line = s.line;

-- name: counted
create temp table counted on commit drop as
select s.line, s.match_id, s.player_id, r.season_id, r.frozen
from staged s
join rules r on s.played_at >= r.starts_at and s.played_at < r.ends_at
            and finale.matches_filter(s.attributes, r.wanted)
where s.verdict = 'new';

-- name: analyze_counted
analyze counted;

-- name: late
insert into finale.late_result (season_id, source_id, match_id, player_id)
select season_id, %(source_id)s, match_id, player_id from counted where frozen
order by season_id, match_id, player_id
on conflict do nothing;

-- name: refuse_lines
update staged s set verdict = 'refused', reason = w.reason
from unnest(%(lines)s::bigint[], %(reasons)s::text[]) as w (line, reason)
where w.line = s.line;

-- name: set_aside
insert into finale.set_aside (source_id, fingerprint, kind, reason, given, origin, line)
select %(source_id)s, sha256(convert_to(kind || given::text, 'UTF8')) as fingerprint, kind, reason, given, %(origin)s, line
from (
    select verdict as kind, reason, line,
           jsonb_build_object('match_id', match_id, 'player_id', encode(player_id, 'escape'), 'points', points::text,
                              'played_at', to_char(played_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              'attributes', attributes) as given
    from staged where verdict in ('conflict', 'refused')
    union all
    select 'refused', * from unnest(%(reasons)s::text[], %(lines)s::bigint[], %(givens)s::jsonb[])
) aside
order by fingerprint, line
on conflict do nothing;

-- name: verdicts
select verdict, count(*) as count from staged group by verdict;

-- name: late_count
select count(distinct line) as count from counted where frozen;

-- name: uncounted
select count(*) as count from staged s
where s.verdict = 'new' and not exists (select from counted c where c.line = s.line);

-- name: remarks
select s.line, s.verdict, s.reason, s.match_id, s.player_id from staged s
where s.verdict in ('conflict', 'refused')
order by s.line limit %(limit)s;

-- name: late_remarks
select c.line, r.board, c.match_id, c.player_id from counted c join rules r using (season_id)
where c.frozen order by c.line, r.board limit %(limit)s;

-- name: seasons_touched
select distinct season_id from counted where not frozen;
