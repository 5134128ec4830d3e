-- A batch comes as columns, one element a mail, in the order of the ids; `inboxes` are those of the mails, each once. The
-- `…_lines` hold a list each, a line an entry: `candidate_lines` the nearest ancestor first, `participant_lines` each
-- address once. The spool row's deletion and the message's insertion are one; answers the ids that became messages. A mail
-- whose inbox has been deleted meanwhile is dropped with it.
create or replace function file_messages(
  at timestamptz, inboxes text[], ids text[], in_inboxes text[], orgs uuid[], raw_ids uuid[], threads text[],
  internet_ids text[], parents text[], ref_lines text[], candidate_lines text[], senders jsonb[], shown jsonb[],
  participant_lines text[], subjects text[], bodies text[], htmls text[], extracts text[], attachment_lists jsonb[],
  securities jsonb[], notes text[], times timestamptz[], announcements uuid[])
returns setof text
language plpgsql
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
