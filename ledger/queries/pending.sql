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
), entries as materialized (
    select *
    from (
        select *, sum(size) over (order by bucket, pending_id) - size as before
        from (
            -- Bucket by bucket along the key, so that no more is read than is asked for.
            select p.*
            from mine cross join lateral (
                select * from finale.pending p
                where p.season_id = %(key)s and p.bucket = mine.bucket
                order by p.pending_id
                limit %(limit)s
            ) p
            limit %(limit)s
        ) p
    ) p
    where before < %(limit)s
), waiting as (
    select distinct e.bucket, u.player_id from entries e cross join unnest(e.players) as u (player_id)
), told as (
    select w.bucket, array_agg(w.player_id) as players, array_agg(t.points) as points, array_agg(t.reached_at) as times
    from waiting w
    -- One by one along the key, also where the planner has no statistics yet.
    left join lateral (
        select * from finale.player_total t where t.season_id = %(key)s and t.player_id = w.player_id limit 1
    ) t on true
    group by w.bucket
)
select told.*, e.entries, e.size
from told
join (
    select bucket, array_agg(pending_id) as entries, sum(size) as size from entries group by bucket
) e using (bucket)
order by told.bucket;

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
), gone as (
    delete from finale.pending p
    using unnest(%(of_entries)s::smallint[], %(entries)s::bigint[]) as a (bucket, pending_id) join held h using (bucket)
    where p.season_id = h.season_id and p.bucket = a.bucket and p.pending_id = a.pending_id
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
select bucket, pending_id from finale.pending where season_id = %(key)s order by pending_id limit %(limit)s;

-- name: done
delete from finale.pending p
using unnest(%(of_entries)s::smallint[], %(entries)s::bigint[]) as a (bucket, pending_id)
where p.season_id = %(key)s and p.bucket = a.bucket and p.pending_id = a.pending_id;

-- name: again
insert into finale.pending (season_id, bucket, players)
select season_id, bucket, array_agg(player_id)
from (
    select w.*, row_number() over (partition by bucket) / 1000 as part
    from (
        select t.season_id, finale.bucket_of(t.player_id) as bucket, t.player_id
        from (
            select season_id, player_id from finale.player_total
            union
            -- Whose last match was voided is taken out again.
            select season_id, player_id from finale.removed_player
        ) t
        join finale.season s
          on s.season_id = t.season_id
         and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
        where t.season_id = %(key)s and finale.bucket_of(t.player_id) = any(%(buckets)s::smallint[])
    ) w
) w
group by season_id, bucket, part;

-- name: players
with mine as (
    select season_id from finale.lease
    where season_id = %(key)s and fence = %(fence)s and holder = %(holder)s
    for key share
)
insert into finale.pending (season_id, bucket, players)
select s.season_id, finale.bucket_of(n.player_id), array_agg(n.player_id)
from mine
join finale.season s
  on s.season_id = mine.season_id and not s.adopted
 and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
cross join (select distinct player_id from unnest(%(players)s::bytea[]) as given (player_id)) n
group by 1, 2;

-- name: lost
insert into finale.pending (season_id, bucket, players)
select season_id, bucket, array_agg(player_id)
from (
    select t.season_id, l.bucket, t.player_id, row_number() over (partition by l.bucket) / 1000 as part
    from unnest(%(buckets)s::smallint[], %(fences)s::bigint[]) as mine (bucket, fence)
    join finale.bucket_lease l
      on l.season_id = %(key)s and l.bucket = mine.bucket and l.holder = %(holder)s and l.fence = mine.fence
    join finale.season s
      on s.season_id = l.season_id and s.state not in ('sealed', 'rewarded', 'delivered', 'cleaned', 'cancelled')
    join (
        select season_id, player_id from finale.player_total
        union
        select season_id, player_id from finale.removed_player
    ) t on t.season_id = l.season_id and finale.bucket_of(t.player_id) = l.bucket
) w
group by season_id, bucket, part;

-- name: any_left
select exists (select from finale.pending where season_id = %(key)s) as left;

-- name: count
select count(distinct player_id) as count
from finale.pending p cross join unnest(p.players) as u (player_id)
where p.season_id = %(key)s;

-- name: seasons
select distinct season_id from finale.pending;

-- name: totals
select count(*) as players, coalesce(sum(points), 0)::text as points from finale.player_total where season_id = %(key)s;
