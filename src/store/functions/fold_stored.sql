-- Subtracts up to `wanted` rows of stored_delta from the counters of their organizations; returns how many. Locks the rows
-- of received_usage first, in the order in which receive_mails locks them. Several nodes may call it at once.
create or replace function fold_stored(wanted integer) returns integer
language plpgsql
as $$
declare
  organizations uuid[];
  ids bigint[];
  folded integer;
begin
  select array_agg(d.organization_id), array_agg(d.id) into organizations, ids
  from (select organization_id, id from stored_delta order by organization_id, id limit wanted) d;
  if ids is null then return 0; end if;
  perform from received_usage u where u.organization_id = any(organizations) order by u.organization_id for no key update;
  with taken as (
    delete from stored_delta d using unnest(organizations, ids) x(organization_id, id)
    where d.organization_id = x.organization_id and d.id = x.id returning d.organization_id, d.bytes
  ), counted as (
    update received_usage u set stored_bytes = u.stored_bytes - n.bytes
    from (select organization_id, sum(bytes) as bytes from taken group by 1) n where u.organization_id = n.organization_id
  )
  select count(*) into folded from taken;
  return folded;
end $$;
