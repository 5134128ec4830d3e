-- Before the first endpoint of all is added: the outbox, which nobody has fanned out so far, is from here on. What transactions
-- that still run add to it is behind this place, and so is all that comes after. Changes nothing where there is an endpoint.
create or replace function begin_fan_out() returns void
language plpgsql
as $$
begin
  if exists (select from webhook where status <> 'deleted') then return; end if;
  -- Whoever adds another first one holds this row until it is there.
  perform from outbox_cursor where name = 'webhooks' for update;
  if exists (select from webhook where status <> 'deleted') then return; end if;
  update outbox_cursor set xact = pg_snapshot_xmin(pg_current_snapshot()), seq = 0
    where name = 'webhooks' and xact < pg_snapshot_xmin(pg_current_snapshot());
end $$;
