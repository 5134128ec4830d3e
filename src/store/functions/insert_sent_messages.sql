-- Writes the messages of the sends that passed, with their threads. The columns are those of the batch that `decide_sends`
-- decided over. A send without an inbox has no message. An element of a `…_lines` column is a list, one entry per line.
create or replace function insert_sent_messages(
  passed boolean[], orgs uuid[], in_inboxes text[], thread_ids text[], are_replies boolean[], ids text[], internet_ids text[],
  parents text[], ref_lines text[], senders jsonb[], visible_recipients jsonb[], participant_lines text[], subjects text[],
  thread_subjects text[], bodies text[], htmls text[], metadatas jsonb[], purposes text[], attachment_lists jsonb[],
  header_sets jsonb[], subs uuid[], raw_ids uuid[], are_raw boolean[], times timestamptz[])
returns void
language plpgsql
as $$
begin
  with counted as (
    update inbox b set message_seq = b.message_seq + n.messages
    from (
      select in_inboxes[g] as inbox, count(*) as messages from generate_series(1, cardinality(orgs)) g
      where passed[g] and in_inboxes[g] is not null group by in_inboxes[g]
    ) n
    where b.id = n.inbox
    returning b.id, b.message_seq - n.messages as base
  )
  insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
    reference_ids, sender, recipients, subject, text, html, metadata, purpose, attachments, headers, submission_id,
    raw_id, raw_whole, created_at, updated_at)
  select ids[g], orgs[g], in_inboxes[g], thread_ids[g], counted.base + row_number() over (partition by counted.id order by g),
    'outbound', internet_ids[g], parents[g], string_to_array(ref_lines[g], E'\n'), senders[g], visible_recipients[g],
    subjects[g], bodies[g], htmls[g], metadatas[g], purposes[g], attachment_lists[g], nullif(header_sets[g], '{}'),
    subs[g], raw_ids[g], are_raw[g], times[g], times[g]
  from generate_series(1, cardinality(orgs)) g join counted on counted.id = in_inboxes[g] where passed[g];

  insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
  select thread_ids[g], orgs[g], in_inboxes[g], thread_subjects[g], string_to_array(participant_lines[g], E'\n'), 1, times[g],
    times[g]
  from generate_series(1, cardinality(orgs)) g where passed[g] and in_inboxes[g] is not null and not are_replies[g];

  if true = any(are_replies) then
    update thread t set message_count = t.message_count + n.messages,
      last_message_at = greatest(t.last_message_at, n.latest),
      participants = join_participants(t.participants, n.participants)
    from (
      select thread_ids[g] as thread, count(distinct g) as messages, max(times[g]) as latest,
        array_agg(p.email) as participants
      from generate_series(1, cardinality(orgs)) g
      left join unnest(string_to_array(participant_lines[g], E'\n')) p(email) on true
      where passed[g] and are_replies[g] group by thread_ids[g]
    ) n
    where t.id = n.thread;
  end if;

  if '[]' <> any(attachment_lists) then
    insert into scan (message_id, organization_id, due_at)
    select ids[g], orgs[g], times[g] from generate_series(1, cardinality(orgs)) g
    where passed[g] and ids[g] is not null and attachment_lists[g] <> '[]';
  end if;
end $$;
