-- Files a batch of received mails: one transaction deletes the spool rows and inserts the messages. Returns the ids that
-- became messages. A mail that is no longer claimed by `owner` with the lease `until` stays in the spool. A mail whose
-- inbox was deleted meanwhile is dropped, and no longer counts as stored. The batch comes as columns, one element per mail,
-- in the order of the ids. `inboxes` has each inbox of the mails once. An element of a `…_lines` column is a list, one
-- entry per line. `candidate_lines` has the nearest ancestor first, `participant_lines` each address once.
create or replace function file_messages(
  at timestamptz, inboxes text[], ids text[], in_inboxes text[], orgs uuid[], raw_ids uuid[], threads text[],
  internet_ids text[], parents text[], ref_lines text[], candidate_lines text[], senders jsonb[], visible_recipients jsonb[],
  participant_lines text[], subjects text[], bodies text[], htmls text[], extracts text[], attachment_lists jsonb[],
  securities jsonb[], automatics boolean[], notes text[], times timestamptz[], announcements uuid[],
  owner integer, until timestamptz)
returns setof text
language plpgsql
as $$
declare
  -- Ordinals of the mails that become messages.
  living integer[];
begin
  perform 1 from inbox b where b.id = any(inboxes) order by b.id for no key update;
  with taken as (
    delete from spool s where s.id = any(ids) and s.claimed_by = owner and s.claimed_until = until
    returning s.id, s.organization_id, s.inbox_id, s.size_bytes, array_position(ids, s.id) as ordinal
  ), found as (
    -- If the outcome of `receive_mails` was unknown, it may run again after the mail was filed, or even deleted since.
    select t.*, b.id is not null and m.id is null and d.message_id is null as is_living from taken t
    left join inbox b on b.id = t.inbox_id and b.status = 'active' left join message m on m.id = t.id
    left join message_tombstone d on d.message_id = t.id
  ), dropped as (
    insert into stored_delta (organization_id, bytes)
    select f.organization_id, sum(f.size_bytes) from found f where not f.is_living group by 1
  )
  select array_agg(f.ordinal order by f.ordinal) into living from found f where f.is_living;
  if living is null then return; end if;

  with counted as (
    update inbox b set message_seq = b.message_seq + n.messages
    from (select in_inboxes[g] as inbox, count(*) as messages from unnest(living) g group by 1) n where b.id = n.inbox
    returning b.id, b.message_seq - n.messages as base
  )
  insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
    reference_ids, sender, recipients, subject, text, html, extracted_text, metadata, purpose, attachments, security,
    automatic, raw_id, filing_note, created_at, updated_at)
  select ids[g], orgs[g], counted.id, threads[g], counted.base + row_number() over (partition by counted.id order by g),
    'inbound', internet_ids[g], parents[g], string_to_array(ref_lines[g], E'\n'), senders[g], visible_recipients[g],
    subjects[g], bodies[g], htmls[g], extracts[g], '{}', 'unclassified', attachment_lists[g], securities[g], automatics[g],
    raw_ids[g], notes[g], times[g], at
  from unnest(living) g join counted on counted.id = in_inboxes[g];

  perform join_threads(living, ids => ids, in_inboxes => in_inboxes, orgs => orgs, threads => threads,
    candidate_lines => candidate_lines, participant_lines => participant_lines, subjects => subjects, times => times);

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
