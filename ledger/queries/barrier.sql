-- name: shared
select pg_advisory_xact_lock_shared(%(space)s, key) from unnest(%(keys)s::int[]) key;

-- name: exclusive
select pg_advisory_xact_lock(%(space)s, %(key)s);

-- name: lock_timeout
select current_setting('lock_timeout') as before, set_config('lock_timeout', %(timeout)s, true);
