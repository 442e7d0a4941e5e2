-- name: plan
insert into finale.delivery (season_id, correction, mode, grants, delivered_at)
select %(key)s, %(correction)s, %(mode)s, count(*),
       case when %(mode)s = 'table' or count(*) = 0 then clock_timestamp() end
from (
    select grant_id from finale.grants where season_id = %(key)s and %(correction)s = 0
    union all
    select grant_id from finale.correction_grants where season_id = %(key)s and correction = %(correction)s
) g
on conflict (season_id, correction) do nothing
returning mode;

-- name: fill
insert into finale.outbox (season_id, correction, grant_id, due_at)
select %(key)s, %(correction)s, grant_id, now()
from (
    select grant_id from finale.grants where season_id = %(key)s and %(correction)s = 0
    union all
    select grant_id from finale.correction_grants where season_id = %(key)s and correction = %(correction)s
) g;

-- name: planned
select correction, mode, grants, planned_at, delivered_at, failures, paused_until
from finale.delivery where season_id = %(key)s order by correction;

-- name: head
select correction, attempts from finale.outbox
where season_id = %(key)s and state = 'waiting' and due_at <= now()
  and (claimed_until is null or claimed_until <= now())
order by due_at, correction, grant_id limit 1;

-- name: claim
update finale.outbox o
set claim = %(claim)s, holder = %(holder)s, claimed_until = clock_timestamp() + %(length)s,
    mark = coalesce(o.mark, %(mark)s)
from (
    select season_id, correction, grant_id from finale.outbox
    where season_id = %(key)s and state = 'waiting' and due_at <= now()
      and (claimed_until is null or claimed_until <= now())
      and correction = %(correction)s and attempts = %(attempts)s
    order by due_at, correction, grant_id
    limit %(limit)s
    for update skip locked
) due
where o.season_id = due.season_id and o.correction = due.correction and o.grant_id = due.grant_id
returning o.grant_id, o.attempts, o.mark;

-- name: next_claim
select nextval('finale.outbox_claim') as claim;

-- name: contents
select grant_id, null::uuid as corrects, player_id, rule, item, amount, position, rank from finale.grants
where season_id = %(key)s and grant_id = any(%(ids)s) order by position, grant_id;

-- name: correction_contents
select grant_id, corrects, player_id, rule, item, amount, position, rank from finale.correction_grants
where season_id = %(key)s and correction = %(correction)s and grant_id = any(%(ids)s) order by position, grant_id;

-- name: acknowledge
with done as (
    update finale.outbox
    set state = 'acknowledged', attempts = attempts + 1, settled_at = clock_timestamp(),
        claim = null, holder = null, claimed_until = null, reason = null
    where season_id = %(key)s and correction = %(correction)s and claim = %(claim)s and state = 'waiting'
      and grant_id = any(%(ids)s::uuid[])
    returning 1
)
select count(*) as rows from done;

-- name: bury
with told as (select * from unnest(%(ids)s::uuid[], %(reasons)s::text[]) as t (grant_id, reason)),
done as (
    update finale.outbox o
    set state = 'dead', attempts = o.attempts + 1, settled_at = clock_timestamp(), reason = told.reason,
        claim = null, holder = null, claimed_until = null
    from told
    where o.season_id = %(key)s and o.correction = %(correction)s and o.claim = %(claim)s and o.state = 'waiting'
      and o.grant_id = told.grant_id
    returning 1
)
select count(*) as rows from done;

-- name: put_off
with told as (select * from unnest(%(ids)s::uuid[], %(waits)s::interval[]) as t (grant_id, wait)),
done as (
    update finale.outbox o
    set attempts = o.attempts + 1, due_at = clock_timestamp() + told.wait, reason = %(reason)s,
        claim = null, holder = null, claimed_until = null
    from told
    where o.season_id = %(key)s and o.correction = %(correction)s and o.claim = %(claim)s and o.state = 'waiting'
      and o.grant_id = told.grant_id
    returning 1
)
select count(*) as rows from done;

-- name: pause
update finale.delivery
set failures = %(failures)s, paused_until = clock_timestamp() + %(pause)s::interval
where season_id = %(key)s and (failures <> %(failures)s or paused_until is not null or %(pause)s::interval is not null);

-- name: may_send
-- What is asked before each batch, in one statement: a hold, a pause, a lease that was taken over, a target to be left
-- alone.
select s.hold_reason as held, p.since, p.who, p.because, d.until, d.failures, clock_timestamp() as now,
       %(fence)s::bigint is null or exists (
           select from finale.lease l
           where l.season_id = s.season_id and l.holder = %(holder)s::text and l.fence = %(fence)s::bigint
       ) as mine
from finale.season s
left join finale.pause p on true
cross join lateral (
    select max(paused_until) as until, coalesce(max(failures), 0) as failures from finale.delivery d
    where d.season_id = s.season_id
) d
where s.season_id = %(key)s;

-- name: paused_until
select max(paused_until) as until, coalesce(max(failures), 0) as failures from finale.delivery where season_id = %(key)s;

-- name: waiting
select count(*) as grants, min(greatest(due_at, claimed_until)) as at,
       array_agg(distinct holder) filter (where claimed_until > now()) as holders
from finale.outbox where season_id = %(key)s and state = 'waiting';

-- name: let_go
update finale.outbox set claim = null, holder = null, claimed_until = null
where season_id = %(key)s and state = 'waiting' and holder = any(%(holders)s);

-- name: finish
update finale.delivery d set delivered_at = clock_timestamp(), failures = 0, paused_until = null
where d.season_id = %(key)s and d.delivered_at is null
  and not exists (
    select from finale.outbox o
    where o.season_id = d.season_id and o.correction = d.correction and o.state = 'waiting'
  );

-- name: counts
select correction, state, count(*) as grants, count(*) filter (where claimed_until > now()) as claimed,
       min(due_at) filter (where state = 'waiting') as due_at
from finale.outbox where season_id = %(key)s group by correction, state order by correction, state;

-- name: settled
select count(*) filter (where state = 'acknowledged') as acknowledged, count(*) filter (where state = 'dead') as dead
from finale.outbox where season_id = %(key)s and correction = %(correction)s;

-- name: dead
select o.correction, o.grant_id, o.attempts, o.settled_at, o.reason, coalesce(g.player_id, c.player_id) as player_id,
       coalesce(g.rule, c.rule) as rule, coalesce(g.item, c.item) as item, coalesce(g.amount, c.amount) as amount
from (
    select * from finale.outbox where season_id = %(key)s and state = 'dead' order by correction, grant_id limit %(limit)s
) o
left join finale.grants g on o.correction = 0 and g.season_id = %(key)s and g.grant_id = o.grant_id
left join finale.correction_grants c
  on c.season_id = %(key)s and c.correction = o.correction and c.grant_id = o.grant_id
order by o.correction, o.grant_id;

-- name: revive
with done as (
    update finale.outbox
    set state = 'waiting', attempts = 0, due_at = now(), settled_at = null,
        claim = null, holder = null, claimed_until = null
    where season_id = %(key)s and state = 'dead'
    returning 1
)
select count(*) as rows from done;

-- name: hurry
with done as (
    update finale.outbox set due_at = now()
    where season_id = %(key)s and state = 'waiting' and due_at > now()
    returning 1
)
select count(*) as rows from done;

-- name: reopen
update finale.delivery d set delivered_at = null, failures = 0, paused_until = null
where d.season_id = %(key)s and d.mode <> 'table'
  and exists (
    select from finale.outbox o
    where o.season_id = d.season_id and o.correction = d.correction and o.state = 'waiting'
  );

-- name: owing
select s.season
from (select distinct season_id from finale.delivery where delivered_at is null) d
join finale.season s using (season_id)
where s.board = %(board)s and s.state in ('delivered', 'cleaned') and s.held_at is null
order by s.starts_at;

-- name: of_player
select o.correction, o.grant_id, o.state, o.attempts, o.due_at, o.settled_at, o.reason
from finale.outbox o where o.season_id = %(key)s and o.grant_id = any(%(ids)s);
