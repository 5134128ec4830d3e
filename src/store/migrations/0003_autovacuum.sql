-- Autovacuum starts at a fiftieth of a table's rows, instead of a fifth: of ten million messages, two million dead ones would
-- take as much room as 200,000 now do. Each of these tables grows with mail and loses rows by retention or by updates. A TOAST
-- table follows its table. Others are so small that a fifth is soon enough.

do $$
declare
  name text;
begin
  foreach name in array array['message', 'raw', 'thread', 'message_tombstone', 'message_search', 'submission', 'send_content',
    'delivery', 'event', 'outbox', 'webhook_delivery', 'metric', 'audit_entry'] loop
    execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)', name);
  end loop;
end $$;
