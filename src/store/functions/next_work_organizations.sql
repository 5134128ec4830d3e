-- Returns up to 32 organizations with due work of the kind, without those in `passed_over`. Takes the organizations after
-- `after`, then those from the lowest id up to it. `last` is the last organization that the search passed. Makes up to 96
-- probes, however many organizations there are.
create or replace function next_work_organizations(wanted_kind text, at timestamptz, passed_over uuid[], after uuid,
  out organizations uuid[], out last uuid)
language plpgsql
-- Planning each call would cost more than the call.
set plan_cache_mode = force_generic_plan
set enable_sort = off
as $$
declare
  start constant uuid := coalesce(after, '00000000-0000-0000-0000-000000000000');
  is_round boolean := after is null;
  next uuid;
begin
  organizations := '{}';
  last := start;
  for probe in 1 .. 96 loop
    select w.organization_id into next from work w
    where w.kind = wanted_kind and w.organization_id > last and w.due_at <= at order by w.organization_id limit 1;
    if not found then
      exit when is_round;
      is_round := true;
      last := '00000000-0000-0000-0000-000000000000';
      continue;
    end if;
    exit when is_round and after is not null and next > start;
    last := next;
    if next <> all(passed_over) then organizations := organizations || next; end if;
    exit when cardinality(organizations) = 32;
  end loop;
end $$;
