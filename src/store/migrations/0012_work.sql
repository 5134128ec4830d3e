-- What jobs do: mail to be filed, reports to be read, messages to be scanned. Organizations take turns, and nodes share it.

-- Work of every kind, and the class of the advisory locks on it: "spol", "kept", "scan". Who has asked for one kind reads the
-- table of that kind alone.
create view work as
  select 'mail' as kind, 1936748396 as lock_class, id, organization_id, due_at, failures, size_bytes from spool
  union all
  select 'report', 1801810036, id, turn, due_at, failures, size_bytes from kept_mail
  union all
  select 'scan', 1935892846, message_id, organization_id, due_at, failures, 0 from scan;

-- Up to 32 organizations with work of the kind that is due, from behind the one that had its turn last, once round; those of
-- `passed_over` are not among them. `last` is where the look ended. So many probes are made at most, however many
-- organizations there are.
create function find_turns(wanted_kind text, at timestamptz, behind uuid, passed_over uuid[], out organizations uuid[], out last uuid)
language plpgsql
-- A plan for each call would cost more than what it does.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
as $$
declare
  start constant uuid := coalesce(behind, '00000000-0000-0000-0000-000000000000');
  is_round boolean := behind is null;
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
    exit when is_round and behind is not null and next > start;
    last := next;
    if next <> all(passed_over) then organizations := organizations || next; end if;
    exit when cardinality(organizations) = 32;
  end loop;
end $$;

-- Locks work of one kind that nobody else does, until the transaction ends: an equal share for each organization whose turn
-- it is, and of each what has waited longest, so that what one of them brings, however much and however slow, holds up its
-- own. Up to `wanted`, and no more than weighs `most_bytes` together unless it is a single one. What failed before is taken
-- alone, so that what happens over it is its own fault. At what cannot be taken together with the others the look ends: the
-- next one, from behind `last`, begins there. `is_more` says whether there is more to be had at once.
-- Nothing is written: readers of the outbox wait for transactions that have written, and reading mail takes seconds. What was
-- done between the look and the lock is among them; who asked reads the rows again. Of an organization it looks at no more
-- than 4,096, which is more than the other nodes hold; with `most_failures`, at those that failed no more often. `only_of`
-- takes the work of one organization, and nothing behind what somebody else has.
create function claim_work(wanted_kind text, at timestamptz, wanted integer, most_bytes bigint, most_failures integer,
  behind uuid, passed_over uuid[], only_of uuid, out claimed text[], out last uuid, out is_more boolean)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
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
  for place in 1 .. cardinality(organizations) loop
    share := greatest(1, (wanted - cardinality(claimed)) / (cardinality(organizations) - place + 1));
    taken := 0;
    for candidate in
      select w.lock_class, w.id, w.failures, w.size_bytes from work w
      where w.kind = wanted_kind and w.organization_id = organizations[place] and w.due_at <= at
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
      last := organizations[place];
      if candidate.failures > 0 then
        is_more := true;
        return;
      end if;
    end loop;
    if cardinality(claimed) >= wanted then
      is_more := is_more or place < cardinality(organizations);
      return;
    end if;
  end loop;
end $$;
