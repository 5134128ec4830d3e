-- What of one kind is claimed next: an equal share for each organization whose turn it is, and of each what has waited longest,
-- so that what one of them brings, however much and however slow, holds up its own. Up to `wanted`, and no more than weighs
-- `most_bytes` together unless it is a single one. What failed before is taken alone, and so is what somebody claimed and lost,
-- so that what happens over it is its own fault. At what cannot be taken together with the others the look ends: the next one,
-- from behind `last`, begins there. `is_more` says whether there is more to be had at once.
-- A claim holds until its time is over, or its node is gone. Of an organization it looks at no more than 4,096, which is more
-- than nodes have claimed. `only_of` takes the work of one organization, and nothing behind what somebody else has.
create or replace function find_work(wanted_kind text, at timestamptz, wanted integer, most_bytes bigint, behind uuid, passed_over uuid[],
  only_of uuid, out found_ids text[], out last uuid, out is_more boolean)
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
  if only_of is null then select * into organizations, last from find_turns(wanted_kind, at, behind, passed_over); end if;
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
