-- Receiving and filing: mail is taken within bounds; spool rows become messages of threads, exactly once, and are told of.

-- How much of a kind of kept mail there is, counted up to the bound of mails.
create function count_kept(kind text, most_mails integer, out mails bigint, out bytes bigint)
language sql stable
set enable_seqscan = off
as $$
  select count(*), coalesce(sum(k.size_bytes), 0) from (
    select size_bytes from kept_mail where purpose = kind limit most_mails) k
$$;

-- The places of mails that would go past an organization's bounds of a UTC day. What is refused of a batch counts in it.
create function find_over_limits(inboxes jsonb, today date) returns setof integer
language sql stable
set enable_seqscan = off
as $$
  select x.i from (
    select x.i, x.org, sum(count(*)) over w as messages, sum(sum(x.size)) over w as bytes
    from jsonb_to_recordset(inboxes) as x(i integer, org uuid, size integer)
    group by x.i, x.org window w as (partition by x.org order by x.i)
  ) x
  cross join lateral (
    select case when u.day = today then u.messages else 0 end as messages, case when u.day = today then u.bytes else 0 end as bytes,
      o.limits from received_usage u join organization o on o.id = u.organization_id where u.organization_id = x.org limit 1
  ) used
  where used.messages + x.messages > (used.limits->>'receivedMessagesPerDay')::bigint
    or used.bytes + x.bytes > (used.limits->>'receivedBytesPerDay')::bigint
$$;

-- The places of mails that would go past the bounds of their kind of kept mail: `bounds` has {purpose, mails, bytes} of each.
create function find_over_kept(kept jsonb, bounds jsonb) returns setof integer
language sql stable
set enable_seqscan = off
as $$
  with bound as materialized (
    select b.purpose, b.mails - held.mails as mails, b.bytes - held.bytes as bytes
    from jsonb_to_recordset(bounds) as b(purpose text, mails integer, bytes bigint)
    cross join lateral count_kept(b.purpose, b.mails) held
    where b.purpose in (select x.purpose from jsonb_to_recordset(kept) as x(purpose text))
  )
  select x.i from (
    select x.i, x.purpose, count(*) over w as mails, sum(x.size) over w as bytes
    from jsonb_to_recordset(kept) as x(i integer, purpose text, size integer)
    window w as (partition by x.purpose order by x.i rows unbounded preceding)
  ) x
  join bound b on b.purpose = x.purpose where x.mails > b.mails or x.bytes > b.bytes
$$;

-- Stores received mails together and counts them for their organizations. `inboxes`: array of {i (the mail's place), id, org,
-- inbox, raw, size, envelope, at}; `kept`: of {i, id, purpose, address, submission, raw, size, envelope, at}; `raws` and
-- `contents` as packRaws writes them. An inbox that was deleted meanwhile gets nothing. A mail that is over a bound for anyone
-- whom it goes to is stored for nobody: it gets one reply, and its sender comes again without those who are over theirs.
-- Answers for each mail of which anything was stored `stored`, for each that is over a bound `over`. Run again with the same
-- ids, it changes nothing and answers the same.
create function receive_mails(at timestamptz, inboxes jsonb, kept jsonb, bounds jsonb, raws jsonb, contents bytea)
returns table (i integer, verdict text)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  today date := (receive_mails.at at time zone 'UTC')::date;
  again integer[];
  refused integer[];
begin
  -- 0x6b657074 is "kept": one at a time, so that its bounds hold across nodes.
  if kept <> '[]' then perform pg_advisory_xact_lock(1801810036, 0); end if;
  perform from received_usage u
    where u.organization_id = any(array(select distinct x.org from jsonb_to_recordset(inboxes) as x(org uuid)))
    order by u.organization_id for no key update;
  again := array(select x.i from jsonb_to_recordset(inboxes || kept) as x(i integer, raw uuid) join raw r on r.id = x.raw);
  if again <> '{}' then
    inboxes := (select coalesce(jsonb_agg(x), '[]') from jsonb_array_elements(inboxes) x where (x->>'i')::integer <> all(again));
    kept := (select coalesce(jsonb_agg(x), '[]') from jsonb_array_elements(kept) x where (x->>'i')::integer <> all(again));
  end if;
  refused := array(select find_over_limits(inboxes, today) union select find_over_kept(kept, bounds));

  return query
  with living as (
    select x.* from jsonb_to_recordset(inboxes) as x(
      i integer, id text, org uuid, inbox text, raw uuid, size integer, envelope jsonb, at timestamptz)
    join inbox b on b.id = x.inbox and b.status = 'active' where x.i <> all(refused) order by b.id for key share of b
  ), needed as (
    select x.*, s.organization_id from jsonb_to_recordset(kept) as x(
      i integer, id text, purpose text, address text, submission uuid, raw uuid, size integer, envelope jsonb, at timestamptz)
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
    insert into kept_mail (id, purpose, address, organization_id, raw_id, size_bytes, envelope, received_at)
    select id, purpose, address, organization_id, raw, size, envelope, at from needed on conflict (id) do nothing
  ), counted as (
    update received_usage u set day = today,
      messages = case when u.day = today then u.messages else 0 end + n.messages,
      bytes = case when u.day = today then u.bytes else 0 end + n.bytes
    from (select organization_id, count(*) as messages, sum(size_bytes) as bytes from spooled group by 1) n
    where u.organization_id = n.organization_id
  )
  select l.i, 'stored' from living l union select n.i, 'stored' from needed n
  union select unnest(again), 'stored' union all select unnest(refused), 'over';
end $$;

-- A batch comes as columns, one element a mail, in the order of the ids; `inboxes` are those of the mails, each once. The
-- `…_lines` hold a list each, a line an entry: `candidate_lines` the nearest ancestor first, `participant_lines` each
-- address once. The spool row's deletion and the message's insertion are one; answers the ids that became messages. A mail
-- whose inbox has been deleted meanwhile is dropped with it.
create function file_messages(
  at timestamptz, inboxes text[], ids text[], in_inboxes text[], orgs uuid[], raw_ids uuid[], threads text[],
  internet_ids text[], parents text[], ref_lines text[], candidate_lines text[], senders jsonb[], shown jsonb[],
  participant_lines text[], subjects text[], bodies text[], htmls text[], extracts text[], attachment_lists jsonb[],
  securities jsonb[], notes text[], times timestamptz[], announcements uuid[])
returns setof text
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  -- Places of mails: those that become messages, and those of which an ancestor is known.
  living integer[];
  related integer[];
  mail integer;
  joined text;
  shared text[] := '{}';
begin
  perform 1 from inbox b where b.id = any(inboxes) order by b.id for no key update;
  with taken as (
    delete from spool s where s.id = any(ids) returning s.id, s.inbox_id, array_position(ids, s.id) as place
  )
  select array_agg(t.place order by t.place) into living from taken t
    join inbox b on b.id = t.inbox_id and b.status = 'active'
    -- A receive with an unknown end ran again, after what it had stored was filed.
    where not exists (select from message m where m.id = t.id);
  if living is null then return; end if;

  with counted as (
    update inbox b set message_seq = b.message_seq + n.messages
    from (select in_inboxes[g] as inbox, count(*) as messages from unnest(living) g group by 1) n where b.id = n.inbox
    returning b.id, b.message_seq - n.messages as base
  )
  insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
    reference_ids, sender, recipients, subject, text, html, extracted_text, metadata, purpose, attachments, security,
    raw_id, filing_note, created_at, updated_at)
  select ids[g], orgs[g], counted.id, threads[g], counted.base + row_number() over (partition by counted.id order by g),
    'inbound', internet_ids[g], parents[g], string_to_array(ref_lines[g], E'\n'), senders[g], shown[g], subjects[g], bodies[g],
    htmls[g], extracts[g], '{}', 'unclassified', attachment_lists[g], securities[g], raw_ids[g], notes[g], times[g], at
  from unnest(living) g join counted on counted.id = in_inboxes[g];

  -- RFC 5322 3.6.4: the nearest known ancestor's thread. What has already joined the thread of this mail moves with it.
  related := array(
    select g from unnest(living) g where candidate_lines[g] <> '' and exists (
      select from unnest(string_to_array(candidate_lines[g], E'\n')) c(mid) cross join lateral (
        select from message m where m.inbox_id = in_inboxes[g] and m.internet_message_id = c.mid limit 1) found)
    order by g);
  if related <> '{}' then
    foreach mail in array related loop
      select m.thread_id into joined
        from unnest(string_to_array(candidate_lines[mail], E'\n')) with ordinality c(mid, nearness)
        join message m on m.inbox_id = in_inboxes[mail] and m.internet_message_id = c.mid
        order by c.nearness, m.seq limit 1;
      update message m set thread_id = joined where m.thread_id = threads[mail];
    end loop;
    -- With a limit each is one probe of the index, whatever the plan's statistics said.
    shared := array(
      select distinct m.thread_id from unnest(related) g
      cross join lateral (select thread_id from message where id = ids[g] limit 1) m);

    insert into thread as t (id, organization_id, inbox_id, subject, participants, message_count, last_message_at,
      created_at)
    select m.thread_id, m.organization_id, m.inbox_id, (array_agg(m.subject order by m.seq))[1],
      join_participants('{}', array_agg(p.email order by m.seq, p.place)), count(distinct m.id), max(m.created_at),
      min(m.created_at)
    from unnest(living) g
    cross join lateral (select * from message where id = ids[g] limit 1) m
    left join lateral unnest(string_to_array(participant_lines[g], E'\n')) with ordinality p(email, place) on true
    where m.thread_id = any(shared)
    group by m.thread_id, m.organization_id, m.inbox_id
    on conflict (id) do update set
      message_count = t.message_count + excluded.message_count,
      last_message_at = greatest(t.last_message_at, excluded.last_message_at),
      participants = join_participants(t.participants, excluded.participants);
  end if;
  insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
  select threads[g], orgs[g], in_inboxes[g], subjects[g], string_to_array(participant_lines[g], E'\n'), 1, times[g], times[g]
  from unnest(living) g where g <> all(related) and threads[g] <> all(shared);

  if '[]' <> any(attachment_lists) then
    insert into scan (message_id, organization_id, due_at)
    select ids[g], orgs[g], at from unnest(living) g where attachment_lists[g] <> '[]';
  end if;

  insert into metric_delta (organization_id, at, counts)
  select n.org, max(n.at), array_agg(row('received', b.domain, null, null, n.amount)::metric_count)
  from (
    select orgs[g] as org, in_inboxes[g] as inbox, hour_of(times[g]) as hour, max(times[g]) as at, count(*) as amount
    from unnest(living) g group by 1, 2, 3
  ) n
  join inbox b on b.id = n.inbox
  group by n.org, n.hour;

  insert into outbox (organization_id, items, created_at)
  select orgs[g],
    ('[' || string_agg('{"id":"' || announcements[g] || '","type":"message.received","message":"' || ids[g] || '"}', ','
      order by g) || ']')::jsonb,
    at
  from unnest(living) g group by orgs[g];
  return query select ids[g] from unnest(living) g;
end $$;

create index raw_blob on raw (id) where blob is not null;

-- Which database this is: one row, restored with the rest. A folder of blobs is marked with it, so that no other
-- database's service takes them for files without an owner.
create table database_identity (id uuid primary key, secret_key_check bytea);
insert into database_identity (id) values (gen_random_uuid());
