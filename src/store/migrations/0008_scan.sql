-- Messages whose attachments wait to be scanned. Whoever scans one holds an advisory lock meanwhile: claims write nothing,
-- a crash lets go of them, and no transaction that has written stays open for the minutes that a scan can take.

create table scan (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  failures integer not null default 0,
  due_at timestamptz not null
) with (fillfactor = 80);
create index scan_due on scan (due_at);
create index scan_turn on scan (organization_id, due_at);

-- Locks a due message that nobody else scans until the transaction ends; null where there is none. Organizations take turns,
-- from behind the one that was served last; those of `passed_over` have none. Of 64 organizations each is looked at once.
create function claim_scan(at timestamptz, behind uuid, passed_over uuid[], out message text, out organization uuid)
language plpgsql
set enable_seqscan = off
set enable_sort = off
as $$
declare
  candidate text;
  is_round boolean := behind is null;
begin
  organization := coalesce(behind, '00000000-0000-0000-0000-000000000000');
  for probe in 1 .. 64 loop
    select s.organization_id into organization from scan s
    where s.organization_id > claim_scan.organization and s.due_at <= at order by s.organization_id limit 1;
    if not found then
      exit when is_round;
      is_round := true;
      organization := '00000000-0000-0000-0000-000000000000';
      continue;
    end if;
    exit when is_round and organization > behind;
    continue when organization = any(passed_over);
    for candidate in
      select s.message_id from scan s where s.organization_id = claim_scan.organization and s.due_at <= at
      order by s.due_at limit 64
    loop
      -- 0x7363616e is "scan". Two messages of one hash wait for each other, which is all that a collision costs.
      continue when not pg_try_advisory_xact_lock(1935892846, hashtext(candidate));
      -- It may have been done between the look and the lock.
      if exists (select from scan s where s.message_id = candidate and s.due_at <= at) then
        message := candidate;
        return;
      end if;
    end loop;
  end loop;
end $$;
