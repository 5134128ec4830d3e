-- Returns the next organizations of a round in a queue: up to `max_organizations` active ones with due mail of one status.
-- The round continues with the organization after `cursor`, and ends at `until`, where it began. Each call passes up to 32
-- organizations, however many there are. Mail of suspended organizations is held. Organizations in `passed_over` are
-- skipped, because enough of their mail is claimed. `due_ms` is the earliest due time of the active organizations passed,
-- also if it is in the future. `is_over`: the round has ended.
create or replace function next_route_organizations(route_key text, wanted_status text, at timestamptz, until uuid,
  passed_over uuid[], max_organizations integer,
  inout cursor uuid, out organizations uuid[], out due_ms double precision, out is_over boolean)
language plpgsql
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  lowest constant uuid := '00000000-0000-0000-0000-000000000000';
  head record;
begin
  organizations := '{}';
  is_over := cursor is null;
  for probe in 1..32 loop
    exit when is_over or cardinality(organizations) >= max_organizations;
    select d.organization_id as id, d.due_at,
      (select o.status from organization o where o.id = d.organization_id) as organization_status into head
    from delivery d
    where d.route = route_key and d.status = wanted_status and d.organization_id > cursor and d.expires_at > at
      and d.claim_epoch is null and d.status in ('pending', 'deferred')
    order by d.organization_id, d.due_at limit 1;
    if found and (cursor >= until or head.id <= until) then
      cursor := head.id;
      is_over := cursor = until;
      continue when head.organization_status is distinct from 'active';
      due_ms := least(due_ms, extract(epoch from head.due_at) * 1000);
      if head.due_at <= at and head.id <> all(passed_over) then organizations := organizations || head.id; end if;
    elsif cursor >= until and until <> lowest then
      cursor := lowest;
    else
      is_over := true;
    end if;
  end loop;
end $$;
