-- name: lock_free
-- For update, so that it waits for whoever checked the lease for key share; a heartbeat's update does not.
select holder, expires_at = 'epoch' as given_back, expires_at > clock_timestamp() as alive from finale.lease
where season_id = %(key)s and (expires_at <= clock_timestamp() or holder = %(dead)s)
for update;

-- name: acquire
insert into finale.lease as l (season_id, holder, fence, acquired_at, expires_at)
values (%(key)s, %(holder)s, 1, clock_timestamp(), clock_timestamp() + %(length)s)
on conflict (season_id) do update
set holder = excluded.holder, fence = l.fence + 1, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
-- Only what lock_free had locked: one that runs out or is given back after it may have been checked by a transaction
-- that is still open.
where %(locked)s
returning fence;

-- name: find
select holder, fence, acquired_at, expires_at, expires_at > clock_timestamp() as alive
from finale.lease where season_id = %(key)s;

-- name: renew
-- Not one that was given back, perhaps by another thread: whoever comes next is to get it at once.
update finale.lease set expires_at = clock_timestamp() + %(length)s
where season_id = %(key)s and holder = %(holder)s and fence = %(fence)s and expires_at <> 'epoch'
returning expires_at;

-- name: give_back
-- The epoch, which no lease runs until: so whoever comes next knows that nothing was taken over.
update finale.lease set expires_at = 'epoch'
where season_id = %(key)s and holder = %(holder)s and fence = %(fence)s;

-- name: check
select 1 as mine from finale.lease
where season_id = %(key)s and holder = %(holder)s and fence = %(fence)s
for key share;
