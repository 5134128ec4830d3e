-- Filing: spool rows become messages of threads, exactly once.

-- `filed`: array of {id, inbox, org, raw, mid, irt, refs, candidates, thread, sender, rcpts, participants, subject,
-- thread_subject, body, html, extracted, attachments, security, note, received_at}. The spool row's deletion and the
-- message's insertion are one; a mail whose inbox has been deleted meanwhile is dropped with it.
create function file_messages(filed jsonb, at timestamptz) returns setof text
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  r record;
  joined text;
  place bigint;
begin
  perform 1 from inbox b
    where b.id in (select f->>'inbox' from jsonb_array_elements(filed) f) order by b.id for no key update;
  for r in
    select * from jsonb_to_recordset(filed) as f(
      id text, inbox text, org uuid, raw uuid, mid text, irt text, refs text[], candidates text[], thread text,
      sender jsonb, rcpts jsonb, participants text[], subject text, thread_subject text, body text, html text,
      extracted text, attachments jsonb, security jsonb, note text, received_at timestamptz)
    order by f.inbox, f.id
  loop
    delete from spool s where s.id = r.id;
    continue when not found;
    -- A receive with an unknown end ran again, after what it had stored was filed.
    continue when exists (select from message m where m.id = r.id);
    update inbox b set message_seq = b.message_seq + 1 where b.id = r.inbox and b.status = 'active'
      returning b.message_seq into place;
    continue when not found;
    -- RFC 5322 3.6.4: the nearest known ancestor's thread.
    joined := null;
    if r.candidates <> '{}' then
      select m.thread_id into joined from unnest(r.candidates) with ordinality c(mid, nearness)
        join message m on m.inbox_id = r.inbox and m.internet_message_id = c.mid
        order by c.nearness, m.seq limit 1;
    end if;
    if joined is null then
      insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
      values (r.thread, r.org, r.inbox, r.thread_subject, r.participants, 1, r.received_at, r.received_at);
    else
      update thread t set message_count = t.message_count + 1,
        last_message_at = greatest(t.last_message_at, r.received_at),
        participants = join_participants(t.participants, r.participants)
        where t.id = joined;
    end if;
    insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, in_reply_to,
      reference_ids, sender, recipients, subject, text, html, extracted_text, metadata, purpose, attachments, security,
      raw_id, filing_note, created_at, updated_at)
    values (r.id, r.org, r.inbox, coalesce(joined, r.thread), place, 'inbound', r.mid, r.irt, r.refs, r.sender, r.rcpts,
      r.subject, r.body, r.html, r.extracted, '{}', 'unclassified', r.attachments, r.security, r.raw, r.note,
      r.received_at, at);
    return next r.id;
  end loop;
end $$;
