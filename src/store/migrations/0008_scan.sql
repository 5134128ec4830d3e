-- Messages whose attachments wait to be scanned. Whoever scans one holds an advisory lock meanwhile: claims write nothing,
-- a crash lets go of them, and no transaction that has written stays open for the minutes that a scan can take.

create table scan (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  failures integer not null default 0,
  due_at timestamptz not null
) with (fillfactor = 80);
create index scan_due on scan (due_at);

-- Locks a due message that nobody else scans until the transaction ends; null where there is none.
create function claim_scan(at timestamptz) returns text
language plpgsql
as $$
declare
  candidate text;
begin
  for candidate in select s.message_id from scan s where s.due_at <= at order by s.due_at limit 64 loop
    -- 0x7363616e is "scan". Two messages of one hash wait for each other, which is all that a collision costs.
    continue when not pg_try_advisory_xact_lock(1935892846, hashtext(candidate));
    -- It may have been done between the look and the lock.
    if exists (select from scan s where s.message_id = candidate and s.due_at <= at) then return candidate; end if;
  end loop;
  return null;
end $$;
