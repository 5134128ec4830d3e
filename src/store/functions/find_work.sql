-- Finds the work of one kind to claim next: an equal share per organization, and the longest waiting rows of each. So an
-- organization with much or slow work delays only its own. Finds up to `wanted` rows of up to `most_bytes` together; a
-- single row may be larger. A row that failed before, or whose claim was lost, is claimed alone, so that no other row can
-- cause its next failure. A row that must be claimed alone, or does not fit, ends this batch. The next call starts after
-- the organization `last`, from which this call took its last row. `is_more` says whether more can be claimed at once. A
-- claim holds until its lease runs out or its node is gone. Reads up to 4,096 rows per organization, which is more than all
-- nodes together have claimed. `only_of` limits the search to one organization. The search then ends at the first row that
-- another claim holds.
create or replace function find_work(wanted_kind text, at timestamptz, wanted integer, most_bytes bigint,
  passed_over uuid[], after uuid, only_of uuid, out found_ids text[], out last uuid, out is_more boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_sort = off
as $$
declare
  organizations uuid[] := array[only_of];
  living integer[];
  candidate record;
  share integer;
  taken integer;
  bytes bigint := 0;
begin
  found_ids := '{}';
  if only_of is null then select * into organizations, last from next_work_organizations(wanted_kind, at, passed_over, after); end if;
  is_more := cardinality(organizations) = 32;
  for ordinal in 1 .. cardinality(organizations) loop
    share := greatest(1, (wanted - cardinality(found_ids)) / (cardinality(organizations) - ordinal + 1));
    taken := 0;
    for candidate in
      select w.id, w.size_bytes, w.claimed_by, w.claimed_until > now() as is_claimed,
        w.failures > 0 or w.claimed_by is not null as is_alone
      from work w where w.kind = wanted_kind and w.organization_id = organizations[ordinal] and w.due_at <= at
      order by w.due_at limit 4096
    loop
      if taken = share then
        is_more := true;
        exit;
      end if;
      if candidate.is_claimed then
        living := coalesce(living, living_nodes());
        if candidate.claimed_by = any(living) then
          is_more := is_more or only_of is not null;
          exit when only_of is not null;
          continue;
        end if;
      end if;
      if found_ids <> '{}' and (bytes + candidate.size_bytes > most_bytes or candidate.is_alone) then
        is_more := true;
        return;
      end if;
      found_ids := found_ids || candidate.id;
      bytes := bytes + candidate.size_bytes;
      taken := taken + 1;
      last := organizations[ordinal];
      if candidate.is_alone then
        is_more := true;
        return;
      end if;
    end loop;
    if cardinality(found_ids) >= wanted then
      is_more := is_more or ordinal < cardinality(organizations);
      return;
    end if;
  end loop;
end $$;
