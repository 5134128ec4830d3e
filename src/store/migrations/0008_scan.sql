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
