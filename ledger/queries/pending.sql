-- name: claim
with wanted as (
    select distinct bucket from finale.pending where season_id = %(key)s and not %(every)s
    union all
    select b::smallint from generate_series(0, 63) b where %(every)s
    union
    select unnest(%(also)s::smallint[])
)
insert into finale.bucket_lease as l (season_id, bucket, holder, fence, expires_at)
select distinct %(key)s::int, bucket, %(holder)s, 1, clock_timestamp() + %(length)s
from wanted
where exists (
    select from finale.season s
    where s.season_id = %(key)s and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
)
  and (%(runner)s::bigint is null or exists (
    select from finale.lease r where r.season_id = %(key)s and r.holder = %(holder)s and r.fence = %(runner)s
))
order by 2
on conflict (season_id, bucket) do update
set holder = excluded.holder, fence = l.fence + 1, expires_at = excluded.expires_at
where %(force)s or l.expires_at <= clock_timestamp() or l.holder = excluded.holder or l.holder = any(%(dead)s::text[])
returning bucket, fence;

-- name: holders
select distinct holder from finale.bucket_lease where season_id = %(key)s and expires_at > clock_timestamp();

-- name: read
with mine as (
    select l.bucket
    from unnest(%(buckets)s::smallint[], %(fences)s::bigint[]) as m (bucket, fence)
    join finale.bucket_lease l
      on l.season_id = %(key)s and l.bucket = m.bucket and l.holder = %(holder)s and l.fence = m.fence
    join finale.season s
      on s.season_id = l.season_id and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
)
select p.bucket, p.player_id, p.version, t.points, t.reached_at
from (
    -- Bucket by bucket along the key, so that no more is read than is asked for.
    select p.*
    from mine cross join lateral (
        select * from finale.pending p
        where p.season_id = %(key)s and p.bucket = mine.bucket
        order by p.player_id
        limit %(limit)s
    ) p
    limit %(limit)s
) p
left join finale.player_total t on t.season_id = p.season_id and t.player_id = p.player_id
order by p.bucket, p.player_id;

-- name: record
with held as (
    select l.season_id, l.bucket
    from unnest(%(buckets)s::smallint[], %(fences)s::bigint[]) as mine (bucket, fence)
    join finale.bucket_lease l
      on l.season_id = %(key)s and l.bucket = mine.bucket and l.holder = %(holder)s and l.fence = mine.fence
    -- In one order, as a claim has them, and until the end: nobody takes a bucket over in the middle.
    order by l.bucket
    for update of l
), renewed as (
    update finale.bucket_lease l set expires_at = clock_timestamp() + %(length)s
    from held h
    where l.season_id = h.season_id and l.bucket = h.bucket
), marked as (
    insert into finale.bucket_mark as m (season_id, bucket, shard, number, token)
    select h.season_id, n.bucket, n.shard, n.number, n.token
    from unnest(%(marked)s::smallint[], %(shards)s::smallint[], %(numbers)s::bigint[], %(tokens)s::text[])
      as n (bucket, shard, number, token)
    join held h using (bucket)
    order by 2, 3
    on conflict (season_id, bucket, shard) do update set number = excluded.number, token = excluded.token
), written as (
    select p.season_id, p.bucket, p.player_id
    from unnest(%(of_players)b::smallint[], %(players)b::bytea[], %(versions)b::bigint[]) as a (bucket, player_id, version)
    join held h on h.bucket = a.bucket
    join finale.pending p
      on p.season_id = h.season_id and p.bucket = a.bucket and p.player_id = a.player_id and p.version = a.version
    -- A row that is locked is getting a newer version just now: it stays, and nobody waits.
    for update of p skip locked
), gone as (
    delete from finale.pending p using written w
    where p.season_id = w.season_id and p.bucket = w.bucket and p.player_id = w.player_id
)
select bucket, set_config('synchronous_commit', 'off', true) from held;

-- name: renew
update finale.bucket_lease l set expires_at = clock_timestamp() + %(length)s
from unnest(%(buckets)s::smallint[], %(fences)s::bigint[]) as mine (bucket, fence)
where l.season_id = %(key)s and l.holder = %(holder)s and l.bucket = mine.bucket and l.fence = mine.fence
returning l.bucket;

-- name: mark
insert into finale.bucket_mark as m (season_id, bucket, shard, number, token)
select %(key)s, * from unnest(%(marked)s::smallint[], %(shards)s::smallint[], %(numbers)s::bigint[], %(tokens)s::text[])
order by 2, 3
on conflict (season_id, bucket, shard) do update set number = excluded.number, token = excluded.token;

-- name: marks
select season_id, bucket, shard, number, token from finale.bucket_mark where season_id = any(%(keys)s);

-- name: listed
select bucket, player_id, version from finale.pending where season_id = %(key)s limit %(limit)s;

-- name: done
with written as (
    select p.season_id, p.bucket, p.player_id
    from finale.pending p
    join unnest(%(of_players)s::smallint[], %(players)s::bytea[], %(versions)s::bigint[]) as a (bucket, player_id, version)
      on p.bucket = a.bucket and p.player_id = a.player_id and p.version = a.version
    where p.season_id = %(key)s
    for update of p skip locked
)
delete from finale.pending p using written w
where p.season_id = w.season_id and p.bucket = w.bucket and p.player_id = w.player_id;

-- name: again
insert into finale.pending as p (season_id, bucket, player_id, version)
select t.season_id, finale.bucket_of(t.player_id), t.player_id, t.version
from (
    select season_id, player_id, version from finale.player_total
    union all
    -- Whose last match was voided is taken out again; one who has played since stands above too.
    select season_id, player_id, 0 from finale.removed_player r
    where not exists (
        select from finale.player_total t where t.season_id = r.season_id and t.player_id = r.player_id
    )
) t
join finale.season s
  on s.season_id = t.season_id and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
where t.season_id = %(key)s and finale.bucket_of(t.player_id) = any(%(buckets)s::smallint[])
order by 1, 2, 3
on conflict (season_id, bucket, player_id) do nothing;

-- name: players
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
insert into finale.pending as p (season_id, bucket, player_id, version)
select s.season_id, finale.bucket_of(n.player_id), n.player_id, coalesce(t.version, 0)
from mine
join finale.season s
  on s.season_id = mine.season_id and not s.adopted
 and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
cross join (select distinct player_id from unnest(%(players)s::bytea[]) as given (player_id)) n
left join finale.player_total t on t.season_id = s.season_id and t.player_id = n.player_id
order by 1, 2, 3
on conflict (season_id, bucket, player_id) do nothing;

-- name: lost
insert into finale.pending as p (season_id, bucket, player_id, version)
select t.season_id, l.bucket, t.player_id, t.version
from unnest(%(buckets)s::smallint[], %(fences)s::bigint[]) as mine (bucket, fence)
join finale.bucket_lease l
  on l.season_id = %(key)s and l.bucket = mine.bucket and l.holder = %(holder)s and l.fence = mine.fence
join finale.season s
  on s.season_id = l.season_id and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
join (
    select season_id, player_id, version from finale.player_total
    union all
    select season_id, player_id, 0 from finale.removed_player r
    where not exists (
        select from finale.player_total t where t.season_id = r.season_id and t.player_id = r.player_id
    )
) t on t.season_id = l.season_id and finale.bucket_of(t.player_id) = l.bucket
order by 1, 2, 3
on conflict (season_id, bucket, player_id) do nothing;

-- name: count
select count(*) as count from finale.pending where season_id = %(key)s;

-- name: seasons
select distinct season_id from finale.pending;

-- name: totals
select count(*) as players, coalesce(sum(points), 0)::text as points from finale.player_total where season_id = %(key)s;
