-- Runs before the first endpoint of the service is added: moves the cursor past the rows that no endpoint wanted. Rows of
-- transactions that still run, and all later rows, come after the cursor. Changes nothing if an endpoint exists.
create or replace function begin_fan_out() returns void
language plpgsql
as $$
begin
  if exists (select from webhook where status <> 'deleted') then return; end if;
  -- A transaction that adds another first endpoint holds this row until it commits.
  perform from outbox_cursor where name = 'webhooks' for update;
  if exists (select from webhook where status <> 'deleted') then return; end if;
  update outbox_cursor set xact = pg_snapshot_xmin(pg_current_snapshot()), seq = 0
    where name = 'webhooks' and xact < pg_snapshot_xmin(pg_current_snapshot());
end $$;
