-- Locks work of one kind that nobody else does, until the transaction ends: an equal share for each organization whose turn
-- it is, and of each what has waited longest, so that what one of them brings, however much and however slow, holds up its
-- own. Up to `wanted`, and no more than weighs `most_bytes` together unless it is a single one. What failed before is taken
-- alone, so that what happens over it is its own fault. At what cannot be taken together with the others the look ends: the
-- next one, from behind `last`, begins there. `is_more` says whether there is more to be had at once.
-- Nothing is written: readers of the outbox wait for transactions that have written, and reading mail takes seconds. What was
-- done between the look and the lock is among them; who asked reads the rows again. Of an organization it looks at no more
-- than 4,096, which is more than the other nodes hold; with `most_failures`, at those that failed no more often. `only_of`
-- takes the work of one organization, and nothing behind what somebody else has.
create or replace function claim_work(wanted_kind text, at timestamptz, wanted integer, most_bytes bigint, most_failures integer,
  behind uuid, passed_over uuid[], only_of uuid, out claimed text[], out last uuid, out is_more boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_sort = off
as $$
declare
  organizations uuid[] := array[only_of];
  candidate record;
  share integer;
  taken integer;
  bytes bigint := 0;
begin
  claimed := '{}';
  if only_of is null then select * into organizations, last from find_turns(wanted_kind, at, behind, passed_over); end if;
  is_more := cardinality(organizations) = 32;
  for ordinal in 1 .. cardinality(organizations) loop
    share := greatest(1, (wanted - cardinality(claimed)) / (cardinality(organizations) - ordinal + 1));
    taken := 0;
    for candidate in
      select w.lock_class, w.id, w.failures, w.size_bytes from work w
      where w.kind = wanted_kind and w.organization_id = organizations[ordinal] and w.due_at <= at
        and (most_failures is null or w.failures <= most_failures) order by w.due_at limit 4096
    loop
      if taken = share then
        is_more := true;
        exit;
      end if;
      if claimed <> '{}' and (bytes + candidate.size_bytes > most_bytes or candidate.failures > 0) then
        is_more := true;
        return;
      end if;
      -- Two of one hash wait for each other, which is all that a collision costs.
      if not pg_try_advisory_xact_lock(candidate.lock_class, hashtext(candidate.id)) then
        is_more := is_more or only_of is not null;
        exit when only_of is not null;
        continue;
      end if;
      claimed := claimed || candidate.id;
      bytes := bytes + candidate.size_bytes;
      taken := taken + 1;
      last := organizations[ordinal];
      if candidate.failures > 0 then
        is_more := true;
        return;
      end if;
    end loop;
    if cardinality(claimed) >= wanted then
      is_more := is_more or ordinal < cardinality(organizations);
      return;
    end if;
  end loop;
end $$;
