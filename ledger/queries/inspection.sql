-- name: server
select current_setting('server_version_num')::int as version, current_setting('server_version') as named,
       pg_is_in_recovery() as standby, current_user::text as role,
       (select rolsuper from pg_roles where rolname = current_user) as superuser,
       current_database()::text as database, pg_database_size(current_database()) as bytes,
       current_setting('synchronous_commit') as commits,
       current_setting('fsync') as fsync, inet_server_addr() is null as same_machine,
       has_database_privilege(current_database(), 'TEMPORARY') as temporary;

-- name: folder
select case when pg_has_role('pg_read_all_settings', 'USAGE') then current_setting('data_directory', true) end as folder;

-- name: tables
select c.relname::text as name, pg_has_role(c.relowner, 'USAGE') as owned,
       has_table_privilege(c.oid, 'SELECT') as may_select, has_table_privilege(c.oid, 'INSERT') as may_insert,
       has_table_privilege(c.oid, 'UPDATE') as may_update, has_table_privilege(c.oid, 'DELETE') as may_delete
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'finale' and c.relkind in ('r', 'p', 'v') and not c.relispartition
order by 1;

-- name: schema
select n.oid is not null as there,
       coalesce(has_schema_privilege(n.oid, 'USAGE'), false) as usage,
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false) as creates
from (select 1) one left join pg_namespace n on n.nspname = 'finale';

-- name: sequences
select c.relname::text as name, has_sequence_privilege(c.oid, 'USAGE') as usage
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'finale' and c.relkind = 'S' and not exists (
    select from pg_depend d where d.objid = c.oid and d.deptype = 'i'
)
order by 1;

-- name: pid
select pg_backend_pid() as pid;
