-- Stores received mails together and counts them for their organizations. `inboxes`: array of {i (the mail's ordinal), id,
-- org, inbox, raw, size, envelope, at}. `kept`: array of {i, id, purpose, address, network, submission, raw, size,
-- envelope, at}. `raws`, `contents`: as packRaws writes them. A deleted inbox gets nothing. A mail over a bound of one
-- recipient is stored for none: it gets one reply, and its sender retries without the recipients over a bound.
-- `deliveries`: array of {i, submission, position}, the delivery that brought a mail, if one of our own nodes sent it. The
-- first stored mail of a delivery marks the delivery in the same commit. Later mails of that delivery are not stored.
-- Returns `stored` for each mail stored for any recipient, `over` for each over a bound, `known` for each whose delivery
-- was marked before. The later of two mails of one delivery in a batch gets no verdict, so that the caller tries it again.
-- A second run with the same ids changes no row and returns the same. It writes to the log, so it waits for the standby too.
create or replace function receive_mails(at timestamptz, inboxes jsonb, kept jsonb, bounds jsonb, raws jsonb, contents bytea,
  deliveries jsonb)
returns table (i integer, verdict text)
language plpgsql
as $$
#variable_conflict use_column
declare
  today date := (receive_mails.at at time zone 'UTC')::date;
  known integer[] := '{}';
  repeated integer[] := '{}';
  again integer[]; refused integer[];
begin
  -- 0x6b657074 is "kept". One transaction at a time, so that the bounds hold across nodes.
  if kept <> '[]' then perform pg_advisory_xact_lock(1801810036, 0); end if;
  perform from received_usage u
    where u.organization_id = any(array(select distinct x.org from jsonb_to_recordset(inboxes) as x(org uuid)))
    order by u.organization_id for no key update;
  again := array(select x.i from jsonb_to_recordset(inboxes || kept) as x(i integer, raw uuid) join raw r on r.id = x.raw);
  perform pg_logical_emit_message(true, 'posthorn', '') where again <> '{}';
  if deliveries <> '[]' then
    select coalesce(array_agg(d.i) filter (where d.is_kept), '{}'), coalesce(array_agg(d.i) filter (where not d.is_kept), '{}')
    into known, repeated from lock_deliveries(deliveries, again) d;
  end if;
  if again || known || repeated <> '{}' then
    inboxes := (select coalesce(jsonb_agg(x), '[]') from jsonb_array_elements(inboxes) x
      where (x->>'i')::integer <> all(again || known || repeated));
    kept := (select coalesce(jsonb_agg(x), '[]') from jsonb_array_elements(kept) x
      where (x->>'i')::integer <> all(again || known || repeated));
  end if;
  -- Called in `from`, a function is part of the query, whose plan is kept. Elsewhere PostgreSQL before 18 plans each call.
  refused := array(select f from find_over_limits(inboxes, today) f);
  if kept <> '[]' then refused := refused || array(select f from find_over_kept(kept, bounds) f); end if;

  return query
  with living as (
    select x.* from jsonb_to_recordset(inboxes) as x(
      i integer, id text, org uuid, inbox text, raw uuid, size integer, envelope jsonb, at timestamptz)
    join inbox b on b.id = x.inbox and b.status = 'active' where x.i <> all(refused) order by b.id for key share of b
  ), needed as (
    select x.*, s.organization_id from jsonb_to_recordset(kept) as x(
      i integer, id text, purpose text, address text, network text, submission uuid, raw uuid, size integer, envelope jsonb, at timestamptz)
    left join submission s on s.id = x.submission where x.i <> all(refused)
  ), stored as (
    insert into raw (id, size_bytes, bytes, blob, created_at)
    select x.id, x.size, substring(contents from x.start + 1 for x.size), x.blob, receive_mails.at
    from jsonb_to_recordset(raws) as x(id uuid, size integer, start integer, blob text)
    where x.id in (select raw from living union all select raw from needed) on conflict (id) do nothing
  ), spooled as (
    insert into spool (id, organization_id, inbox_id, raw_id, size_bytes, envelope, received_at, due_at)
    select id, org, inbox, raw, size, envelope, at, at from living on conflict (id) do nothing
    returning organization_id, size_bytes
  ), kept_now as (
    insert into kept_mail (id, purpose, address, network, organization_id, raw_id, size_bytes, envelope, received_at)
    select id, purpose, address, network, organization_id, raw, size, envelope, at from needed on conflict (id) do nothing
  ), marked as (
    update delivery d set kept_at = receive_mails.at
    from jsonb_to_recordset(deliveries) as x(i integer, submission uuid, "position" integer)
    where d.submission_id = x.submission and d.position = x.position
      and x.i in (select i from living union all select i from needed)
  ), counted as (
    update received_usage u set day = today,
      messages = case when u.day = today then u.messages else 0 end + n.messages,
      bytes = case when u.day = today then u.bytes else 0 end + n.bytes,
      stored_bytes = u.stored_bytes + n.bytes
    from (select organization_id, count(*) as messages, sum(size_bytes) as bytes from spooled group by 1) n
    where u.organization_id = n.organization_id
  )
  select l.i, 'stored' from living l union select n.i, 'stored' from needed n
  union select unnest(again), 'stored' union all select unnest(refused), 'over'
  union all select unnest(known), 'known';
end $$;
