-- Filing: spool rows become messages of threads, exactly once, and are told of.

-- Locks the mails that have waited longest and that nobody else files, until the transaction ends: up to `wanted`, and no
-- more than weigh `most_bytes` together unless it is a single one. One that failed before is taken alone, so that what
-- happens over it is its own fault. Nothing is written: readers of the outbox wait for transactions that have written, and
-- reading mail takes seconds. What was filed between the look and the lock is among them; who asked reads the rows again.
-- It looks at no more than 4,096, which is more than the other nodes hold; with `most_failures`, at those that failed no more
-- often.
create function claim_spool(at timestamptz, wanted integer, most_bytes bigint, most_failures integer,
  out claimed text[], out is_more boolean)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
  candidate record;
  bytes bigint := 0;
begin
  claimed := '{}';
  is_more := false;
  for candidate in
    select s.id, s.failures, r.size_bytes from spool s join raw r on r.id = s.raw_id where s.due_at <= at
      and (most_failures is null or s.failures <= most_failures) order by s.due_at limit 4096
  loop
    is_more := claimed <> '{}'
      and (cardinality(claimed) = wanted or bytes + candidate.size_bytes > most_bytes or candidate.failures > 0);
    exit when is_more;
    -- 0x73706f6c is "spol". Two mails of one hash wait for each other, which is all that a collision costs.
    continue when not pg_try_advisory_xact_lock(1936748396, hashtext(candidate.id));
    claimed := claimed || candidate.id;
    bytes := bytes + candidate.size_bytes;
    is_more := candidate.failures > 0;
    exit when is_more;
  end loop;
end $$;

-- `filed`: array of {id, inbox, org, raw, mid, irt, refs, candidates, thread, sender, rcpts, participants, subject, body,
-- html, extracted, attachments, security, note, received_at}; `ids` and `inboxes` are those of `filed`. The spool row's
-- deletion and the message's insertion are one; answers the ids that became messages. A mail whose inbox has been deleted
-- meanwhile is dropped with it.
create function file_messages(filed jsonb, ids text[], inboxes text[], at timestamptz) returns setof text
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  living text[];
  r record;
  joined text;
begin
  perform 1 from inbox b where b.id = any(inboxes) order by b.id for no key update;
  with taken as (
    delete from spool s where s.id = any(ids) returning s.id, s.inbox_id
  )
  select array_agg(t.id) into living from taken t
    join inbox b on b.id = t.inbox_id and b.status = 'active'
    -- A receive with an unknown end ran again, after what it had stored was filed.
    where not exists (select from message m where m.id = t.id);
  if living is null then return; end if;

  with x as materialized (
    select * from jsonb_to_recordset(filed) as x(
      id text, inbox text, org uuid, raw uuid, mid text, irt text, refs text[], thread text, sender jsonb, rcpts jsonb,
      subject text, body text, html text, extracted text, attachments jsonb, security jsonb, note text,
      received_at timestamptz)
    where x.id = any(living)
  ), counted as (
    update inbox b set message_seq = b.message_seq + n.messages
    from (select inbox, count(*) as messages from x group by inbox) n where b.id = n.inbox
    returning b.id, b.message_seq - n.messages as base
  )
  insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
    reference_ids, sender, recipients, subject, text, html, extracted_text, metadata, purpose, attachments, security,
    raw_id, filing_note, created_at, updated_at)
  select x.id, x.org, x.inbox, x.thread, counted.base + row_number() over (partition by x.inbox order by x.id),
    'inbound', x.mid, x.irt, x.refs, x.sender, x.rcpts, x.subject, x.body, x.html, x.extracted, '{}', 'unclassified',
    x.attachments, x.security, x.raw, x.note, x.received_at, at
  from x join counted on counted.id = x.inbox;

  -- RFC 5322 3.6.4: the nearest known ancestor's thread. What has already joined the thread of this mail moves with it.
  for r in
    select * from jsonb_to_recordset(filed) as x(id text, inbox text, thread text, candidates text[])
    where x.id = any(living) and x.candidates <> '{}' order by x.inbox, x.id
  loop
    select m.thread_id into joined from unnest(r.candidates) with ordinality c(mid, nearness)
      join message m on m.inbox_id = r.inbox and m.internet_message_id = c.mid and m.id <> r.id
      order by c.nearness, m.seq limit 1;
    continue when joined is null;
    update message m set thread_id = joined where m.thread_id = r.thread;
  end loop;

  insert into thread as t (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
  select m.thread_id, m.organization_id, m.inbox_id, (array_agg(m.subject order by m.seq))[1],
    join_participants('{}', array_agg(p.email order by m.seq, p.place)), count(distinct m.id), max(m.created_at),
    min(m.created_at)
  from jsonb_to_recordset(filed) as x(id text, participants text[])
  join message m on m.id = x.id
  left join lateral unnest(x.participants) with ordinality p(email, place) on true
  where x.id = any(living)
  group by m.thread_id, m.organization_id, m.inbox_id
  on conflict (id) do update set
    message_count = t.message_count + excluded.message_count,
    last_message_at = greatest(t.last_message_at, excluded.last_message_at),
    participants = join_participants(t.participants, excluded.participants);
  perform enqueue_scans(living, at);
  perform count_received(living);
  insert into outbox (organization_id, items, created_at)
  select m.organization_id, jsonb_agg(jsonb_build_object('id', uuid_v7(at), 'type', 'message.received', 'message', m.id)
    order by m.id), at
  from message m where m.id = any(living) group by m.organization_id;
  return query select unnest(living);
end $$;

create index raw_blob on raw (id) where blob is not null;

-- Which database this is: one row, restored with the rest. A folder of blobs is marked with it, so that no other
-- database's service takes them for files without an owner.
create table database_identity (id uuid primary key);
insert into database_identity (id) values (gen_random_uuid());
