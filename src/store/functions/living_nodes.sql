-- Returns the numbers of the living nodes. Each holds a session lock of the class "node" under its number. The other nodes
-- end the session of a node that hangs.
create or replace function living_nodes() returns integer[]
language sql stable
as $$
  select coalesce(array_agg(l.objid::integer), '{}') from pg_locks l where l.locktype = 'advisory' and l.objsubid = 2
    and l.classid = 1852793957 and l.database = (select oid from pg_database where datname = current_database())
$$;
