-- Acceptance: one call a batch. Limits and idempotency are exact across nodes, with no client inside the lock.
-- Lock order everywhere: usage (by organization), inbox (by id), route (by key), delivery, submission (by id).

-- Whether a window of 60 s runs. One that begins in the future is left over from a clock that was wrong; the clocks of
-- nodes differ by less than a minute.
create function is_running(started_at timestamptz, at timestamptz) returns boolean
language sql immutable
as $$
  select started_at > at - interval '60 s' and started_at < at + interval '60 s'
$$;

-- Joins of a small batch to large tables must use their indexes whatever the statistics said when the plan was cached.
-- `organizations` and `inboxes` are those of `sends`, each once.
create function accept_sends(sends jsonb, organizations uuid[], inboxes text[], at timestamptz)
returns table (i integer, verdict text, submission_id uuid, retry_after integer)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  r record;
  org uuid;
  minute_started timestamptz;
  minute_count integer;
  day_count integer;
  recipient_count integer;
  today date := (at at time zone 'UTC')::date;
  passed integer[] := '{}';
begin
  perform 1 from usage u where u.organization_id = any(organizations) order by u.organization_id for update;
  perform 1 from inbox b where b.id = any(inboxes) order by b.id for no key update;

  for r in
    select c.*, o.status as organization_status, o.limits, k.id as live_key,
      b.id as live_inbox, t.id as live_thread,
      s.id as seen, s.request_hash as seen_hash, s.result_deleted or sb.status = 'deleted' as seen_deleted,
      u.minute_started_at, u.minute_messages, u.day, u.day_messages, u.day_recipients
    from jsonb_to_recordset(sends) as c(
      i integer, org uuid, key uuid, digest text, hash text, refusal text,
      inbox text, thread text, fresh boolean, sub uuid, recipients integer)
    join organization o on o.id = c.org
    join usage u on u.organization_id = c.org
    left join api_key k on k.id = c.key and k.revoked_at is null and (k.expires_at is null or k.expires_at > at)
    left join inbox b on b.id = c.inbox and b.organization_id = c.org and b.status = 'active'
    left join thread t on t.id = c.thread and t.inbox_id = c.inbox
    left join submission s on s.idempotency_digest = decode(c.digest, 'hex')
    left join inbox sb on sb.id = s.inbox_id
    order by c.org, c.i
  loop
    if org is distinct from r.org then
      org := r.org;
      minute_started := r.minute_started_at;
      minute_count := r.minute_messages;
      if not is_running(minute_started, at) then
        minute_started := null;
        minute_count := 0;
      end if;
      day_count := case when r.day = today then r.day_messages else 0 end;
      recipient_count := case when r.day = today then r.day_recipients else 0 end;
    end if;

    i := r.i;
    submission_id := coalesce(r.seen, r.sub);
    retry_after := null;
    verdict := case
      when r.live_key is null then 'unauthorized'
      when r.organization_status <> 'active' then 'organization_inactive'
      when r.seen = r.sub then 'accepted'
      when r.seen_deleted then 'idempotency_result_expired'
      when r.seen is not null and r.seen_hash = decode(r.hash, 'hex') then 'replayed'
      when r.seen is not null then 'idempotency_key_reused'
      when r.inbox is not null and r.live_inbox is null then 'not_found'
      when not r.fresh and r.live_thread is null then 'not_found'
      else r.refusal
    end;
    if verdict is null then
      if minute_count + 1 > (r.limits->>'messagesPerMinute')::integer then
        verdict := 'send_limit_exceeded';
        retry_after := greatest(1, ceil(extract(epoch from minute_started + interval '60 s' - at)));
      elsif day_count + 1 > (r.limits->>'messagesPerDay')::integer
        or recipient_count + r.recipients > (r.limits->>'recipientsPerDay')::integer then
        verdict := 'send_limit_exceeded';
        retry_after := greatest(1, ceil(extract(epoch from (today + 1)::timestamp at time zone 'UTC' - at)));
      else
        verdict := 'accepted';
        passed := passed || r.i;
        minute_started := coalesce(minute_started, at);
        minute_count := minute_count + 1;
        day_count := day_count + 1;
        recipient_count := recipient_count + r.recipients;
      end if;
    end if;
    return next;
  end loop;

  if passed = '{}' then return; end if;

  update usage u set
    minute_started_at = case when is_running(u.minute_started_at, at) then u.minute_started_at else at end,
    minute_messages = case when is_running(u.minute_started_at, at) then u.minute_messages else 0 end + n.messages,
    day = today,
    day_messages = case when u.day = today then u.day_messages else 0 end + n.messages,
    day_recipients = case when u.day = today then u.day_recipients else 0 end + n.recipients
  from (
    select c.org, count(*) as messages, sum(c.recipients) as recipients
    from jsonb_to_recordset(sends) as c(i integer, org uuid, recipients integer)
    where c.i = any(passed) group by c.org
  ) n
  where u.organization_id = n.org;
  perform insert_sends(sends, passed);
end $$;

-- Writes what accept_sends let pass, under its locks: message, thread, submission, deliveries and what is told of them. A send of no inbox has
-- its content in place of message and thread; `fresh` is null there.
create function insert_sends(sends jsonb, passed integer[]) returns void
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with x as materialized (
    select * from jsonb_to_recordset(sends) as x(
      i integer, org uuid, op text, idem text, digest text, hash text, inbox text, thread text, fresh boolean, sub uuid,
      id text, mid text, irt text, refs text[], sender jsonb, rcpts jsonb, participants text[], subject text,
      thread_subject text, body text, html text, metadata jsonb, purpose text, attachments jsonb, raw uuid,
      deliveries jsonb, at timestamptz, expires_at timestamptz, domain_id uuid, headers jsonb)
    where x.i = any(passed)
  ), counted as (
    update inbox b set message_seq = b.message_seq + n.messages
    from (select inbox, count(*) as messages from x group by inbox) n
    where b.id = n.inbox
    returning b.id, b.message_seq - n.messages as base
  ), messages as (
    insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
      reference_ids, sender, recipients, subject, text, html, metadata, purpose, attachments, submission_id, raw_id,
      created_at, updated_at)
    select x.id, x.org, x.inbox, x.thread, counted.base + row_number() over (partition by x.inbox order by x.i),
      'outbound', x.mid, x.irt, x.refs, x.sender, x.rcpts, x.subject, x.body, x.html, x.metadata, x.purpose,
      x.attachments, x.sub, x.raw, x.at, x.at
    from x join counted on counted.id = x.inbox
  ), threads as (
    insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
    select x.thread, x.org, x.inbox, x.thread_subject, x.participants, 1, x.at, x.at
    from x where x.fresh
  ), replied as (
    update thread t set message_count = t.message_count + n.messages, last_message_at = greatest(t.last_message_at, n.latest),
      participants = join_participants(t.participants, n.participants)
    from (
      select x.thread, count(distinct x.i) as messages, max(x.at) as latest, array_agg(p.email) as participants
      from x left join unnest(x.participants) p(email) on true where not x.fresh group by x.thread
    ) n
    where t.id = n.thread
  ), scans as (
    insert into scan (message_id, organization_id, due_at)
    select x.id, x.org, x.at from x where x.inbox is not null and x.attachments <> '[]'
  ), contents as (
    insert into send_content (submission_id, organization_id, domain_id, internet_message_id, recipients, text, html,
      headers, created_at)
    select x.sub, x.org, x.domain_id, x.mid, x.rcpts, x.body, x.html, x.headers, x.at from x where x.inbox is null
  ), submissions as (
    insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, inbox_id, message_id, sender,
      subject, metadata, purpose, status, created_at, updated_at)
    select x.sub, x.org, x.op, x.idem, decode(x.digest, 'hex'), decode(x.hash, 'hex'), x.inbox, x.id, x.sender, x.subject, x.metadata, x.purpose,
      'pending', x.at, x.at
    from x
  ), deliveries as (
    insert into delivery (submission_id, position, organization_id, inbox_id, email, address_key, domain, route, status,
      due_at, expires_at, updated_at)
    select x.sub, d.position, x.org, x.inbox, d.email, d.key, d.domain, d.route, 'pending', x.at, x.expires_at, x.at
    from x cross join lateral jsonb_to_recordset(x.deliveries) as d(
      position integer, email text, key text, domain text, route text)
  )
  insert into outbox (organization_id, items, created_at)
  select x.org,
    jsonb_agg(jsonb_build_object('id', x.sub, 'type', 'message.sent', 'submission', x.sub, 'event', 0) order by x.i),
    max(x.at)
  from x group by x.org;
end $$;

-- Participants in order of first appearance, each once, at most 500.
create function join_participants(known text[], added text[]) returns text[]
language sql immutable
as $$
  select coalesce(array_agg(email order by first), '{}')
  from (
    select email, min(place) as first from unnest(known || added) with ordinality p(email, place)
    where email is not null group by email order by min(place) limit 500
  ) p
$$;
