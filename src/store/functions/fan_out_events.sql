-- Turns the outbox's next rows into deliveries to the endpoints that want them, up to about `wanted` deliveries. Returns
-- how many rows it took, whether more rows wait, whether any endpoint exists, and which endpoints have new work. Some
-- waiting rows may not be readable before a running transaction ends. Returns nothing if another node fans out at the same
-- time.
create or replace function fan_out_events(wanted integer, at timestamptz)
returns table (taken integer, is_more boolean, is_wanted boolean, webhooks text[])
language plpgsql
as $$
declare
  c outbox_cursor;
  first_ms bigint;
begin
  select * into c from outbox_cursor where name = 'webhooks' for update skip locked;
  if not found then return; end if;
  first_ms := greatest((extract(epoch from at) * 1000)::bigint, c.last_ms + 1);

  with seen as materialized (
    select o.*, e.endpoints from (
      select * from outbox where (xact, seq) > (c.xact, c.seq) and xact < pg_snapshot_xmin(pg_current_snapshot())
      order by xact, seq limit wanted
    ) o
    cross join lateral (
      select count(*) as endpoints from webhook w where w.organization_id = o.organization_id and w.status <> 'deleted'
    ) e
  ), batch as materialized (
    select * from (
      select s.*, sum(jsonb_array_length(s.items) * s.endpoints) over (order by s.xact, s.seq) as deliveries,
        row_number() over (order by s.xact, s.seq) as ordinal
      from seen s
    ) n
    where n.ordinal = 1 or n.deliveries <= wanted
  ), calls as (
    select w.id, b.organization_id, i.item, b.created_at,
      (row_number() over (order by b.xact, b.seq, i.ordinal, w.id))::integer as ordinal
    from batch b
    join webhook w on w.organization_id = b.organization_id and w.status <> 'deleted'
    cross join lateral jsonb_array_elements(b.items) with ordinality as i(item, ordinal)
    where b.endpoints > 0 and case when i.item ? 'webhook' then i.item->>'webhook' = w.id
      else w.status = 'active' and (w.event_types is null or i.item->>'type' = any(w.event_types)) end
  ), inserted as (
    insert into webhook_delivery (id, organization_id, webhook_id, item, announced_at, status, created_at)
    select delivery_id(first_ms, x.ordinal), x.organization_id, x.id, x.item, x.created_at, 'pending', at
    from calls x order by x.ordinal
    returning webhook_id
  ), moved as (
    update outbox_cursor u set xact = l.xact, seq = l.seq, last_ms = first_ms + (select count(*) / 4096 from inserted)
    from (select b.xact, b.seq from batch b order by b.xact desc, b.seq desc limit 1) l where u.name = c.name
    returning u.xact, u.seq
  )
  select (select count(*) from batch), coalesce((select array_agg(distinct webhook_id) from inserted), '{}'),
    (select exists (select from outbox o where (o.xact, o.seq) > (coalesce(m.xact, c.xact), coalesce(m.seq, c.seq)))
      from (select 1) one left join moved m on true),
    exists (select from webhook w where w.status <> 'deleted')
  into taken, webhooks, is_more, is_wanted;
  return next;
end $$;
