-- A batch comes as columns. First its organizations, each once and in order, with how many sends and recipients it has there,
-- its keys and its inboxes, each once. Then, one element a send: what decides over it, its recipients (`to_…`, each with the
-- place of its send, from 1), what is written when it passes. A send of no inbox has no id, no thread and no `fresh`; it has
-- a domain and header fields. `ref_lines` and `participant_lines` hold a list each, a line an entry.
-- Answers what became of the sends that were not simply accepted, and the positions of recipients that are suppressed.
-- Joins of a small batch to large tables must use their indexes whatever the statistics said when the plan was cached.
create or replace function accept_sends(
  at timestamptz, organizations uuid[], org_messages integer[], org_recipients integer[], callers uuid[], inboxes text[],
  orgs uuid[], keys uuid[], digests bytea[], hashes bytea[], refusals text[], in_inboxes text[], in_threads text[],
  freshness boolean[], subs uuid[], recipient_counts integer[],
  to_sends integer[], to_positions integer[], to_emails text[], to_keys text[], to_domains text[], to_routes text[],
  operations text[], idempotency_keys text[], ids text[], internet_ids text[], parents text[], ref_lines text[],
  senders jsonb[], shown jsonb[], participant_lines text[], subjects text[], thread_subjects text[], bodies text[],
  htmls text[], metadatas jsonb[], purposes text[], attachment_lists jsonb[], raw_ids uuid[], domain_ids uuid[],
  header_sets jsonb[], times timestamptz[], expiries timestamptz[])
returns table (i integer, verdict text, submission_id uuid, retry_after integer, muted integer[])
language plpgsql
as $$
declare
  r record;
  org uuid;
  org_place integer;
  minute_started timestamptz;
  minute_count integer;
  day_count integer;
  recipient_count integer;
  recipients integer;
  today date := (at at time zone 'UTC')::date;
  is_plain boolean;
  suppressed integer[] := '{}';
  passed boolean[];
begin
  -- Nobody else counts before this commits. Whoever waited for the lock sees what is below as it is after it.
  perform 1 from usage u where u.organization_id = any(organizations) order by u.organization_id for update;
  if inboxes <> '{}' then
    perform 1 from inbox b where b.id = any(inboxes) order by b.id for no key update;
  end if;

  -- Measured: a batch in which nothing stands against any send is found out by a few look-ups, which cost a third of judging
  -- its sends one by one. The limits keep the plan from joining in any other way than by a probe of the index for each.
  is_plain := array_remove(refusals, null) = '{}'
    and (select count(*) = cardinality(organizations) and bool_and(c.status = 'active' and (
        c.minute_count + org_messages[c.place] > (c.limits->>'messagesPerMinute')::integer
        or c.day_count + org_messages[c.place] > (c.limits->>'messagesPerDay')::integer
        or c.recipient_count + org_recipients[c.place] > (c.limits->>'recipientsPerDay')::integer) is not true)
      from (
        select o.status, o.limits, width_bucket(o.id, organizations) as place,
          case when is_running(u.minute_started_at, at) then u.minute_messages else 0 end as minute_count,
          case when u.day = today then u.day_messages else 0 end as day_count,
          case when u.day = today then u.day_recipients else 0 end as recipient_count
        from usage u join organization o on o.id = u.organization_id where u.organization_id = any(organizations)
      ) c)
    and (select count(*) = cardinality(callers) from api_key k
      where k.id = any(callers) and k.revoked_at is null and (k.expires_at is null or k.expires_at > at))
    and not exists (select from submission s where s.idempotency_digest = any(digests))
    and not exists (select from unnest(to_sends, to_keys) d(send, key) cross join lateral (
      select from suppression s where s.organization_id = orgs[d.send] and s.address_key = d.key limit 1) found);
  if is_plain and inboxes <> '{}' then
    is_plain := not exists (
      select from generate_series(1, cardinality(orgs)) g where in_inboxes[g] is not null and (
        (select b.status = 'active' and b.organization_id = orgs[g] from inbox b where b.id = in_inboxes[g]) is not true
        or not freshness[g]
          and (select t.inbox_id = in_inboxes[g] from thread t where t.id = in_threads[g]) is not true));
  end if;

  passed := array_fill(is_plain is true, array[cardinality(orgs)]);
  if is_plain is not true then
    org_messages := array_fill(0, array[cardinality(organizations)]);
    org_recipients := org_messages;
    suppressed := array(
      select d.place from unnest(to_sends, to_keys) with ordinality d(send, key, place)
      cross join lateral (
        select from suppression s where s.organization_id = orgs[d.send] and s.address_key = d.key limit 1
      ) found);

    for r in
      select c as i, orgs[c] as org, hashes[c] as hash, refusals[c] as refusal, in_inboxes[c] as inbox, freshness[c] as fresh,
        subs[c] as sub, o.status as organization_status, o.limits, k.id as live_key, b.id as live_inbox, t.id as live_thread,
        s.id as seen, s.request_hash as seen_hash, s.result_deleted or sb.status = 'deleted' as seen_deleted,
        u.minute_started_at, u.minute_messages, u.day, u.day_messages, u.day_recipients
      from generate_series(1, cardinality(orgs)) c
      left join usage u on u.organization_id = orgs[c]
      left join organization o on o.id = u.organization_id
      left join api_key k on k.id = keys[c] and k.revoked_at is null and (k.expires_at is null or k.expires_at > at)
      left join inbox b on b.id = in_inboxes[c] and b.organization_id = orgs[c] and b.status = 'active'
      left join thread t on t.id = in_threads[c] and t.inbox_id = in_inboxes[c]
      left join submission s on s.idempotency_digest = digests[c]
      left join inbox sb on sb.id = s.inbox_id
      order by orgs[c], c
    loop
      if org is distinct from r.org then
        org := r.org;
        org_place := width_bucket(org, organizations);
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
      muted := '{}';
      if suppressed <> '{}' then
        muted := array(select to_positions[p] from unnest(suppressed) p where to_sends[p] = i);
      end if;
      recipients := recipient_counts[i] - cardinality(muted);
      submission_id := coalesce(r.seen, r.sub);
      retry_after := null;
      verdict := case
        -- The answer to an earlier run of the batch was lost: what it committed stays accepted, whatever became of the key.
        when r.seen = r.sub then 'accepted'
        when r.live_key is null then 'unauthorized'
        when r.organization_status is distinct from 'active' then 'organization_inactive'
        when r.seen_deleted then 'idempotency_result_expired'
        when r.seen is not null and r.seen_hash = r.hash then 'replayed'
        when r.seen is not null then 'idempotency_key_reused'
        when r.inbox is not null and r.live_inbox is null then 'not_found'
        when not r.fresh and r.live_thread is null then 'not_found'
        when r.refusal is not null then r.refusal
        when recipients = 0 and muted <> '{}' then 'all_recipients_suppressed'
      end;
      if verdict is null then
        -- Where both windows are used up, the one that ends later is what to wait for.
        if day_count + 1 > (r.limits->>'messagesPerDay')::integer
          or recipient_count + recipients > (r.limits->>'recipientsPerDay')::integer then
          verdict := 'send_limit_exceeded';
          retry_after := greatest(1, ceil(extract(epoch from (today + 1)::timestamp at time zone 'UTC' - at)));
        end if;
        if minute_count + 1 > (r.limits->>'messagesPerMinute')::integer then
          verdict := 'send_limit_exceeded';
          -- Who waited for the lock meanwhile has an earlier time than the window's beginning.
          retry_after := greatest(1, retry_after, least(60, ceil(extract(epoch from minute_started + interval '60 s' - at))));
        end if;
        if verdict is null then
          verdict := 'accepted';
          passed[r.i] := true;
          org_messages[org_place] := org_messages[org_place] + 1;
          org_recipients[org_place] := org_recipients[org_place] + recipients;
          minute_started := coalesce(minute_started, at);
          minute_count := minute_count + 1;
          day_count := day_count + 1;
          recipient_count := recipient_count + recipients;
        end if;
      end if;
      if verdict <> 'accepted' or muted <> '{}' then return next; end if;
    end loop;
    if not true = any(passed) then return; end if;
  end if;

  update usage u set
    minute_started_at = case when is_running(u.minute_started_at, at) then u.minute_started_at else at end,
    minute_messages = case when is_running(u.minute_started_at, at) then u.minute_messages else 0 end
      + org_messages[width_bucket(u.organization_id, organizations)],
    day = today,
    day_messages = case when u.day = today then u.day_messages else 0 end
      + org_messages[width_bucket(u.organization_id, organizations)],
    day_recipients = case when u.day = today then u.day_recipients else 0 end
      + org_recipients[width_bucket(u.organization_id, organizations)]
  where u.organization_id = any(organizations) and org_messages[width_bucket(u.organization_id, organizations)] > 0;

  if inboxes <> '{}' then
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
      reference_ids, sender, recipients, subject, text, html, metadata, purpose, attachments, submission_id, raw_id,
      created_at, updated_at)
    select ids[g], orgs[g], in_inboxes[g], in_threads[g], counted.base + row_number() over (partition by counted.id order by g),
      'outbound', internet_ids[g], parents[g], string_to_array(ref_lines[g], E'\n'), senders[g], shown[g], subjects[g],
      bodies[g], htmls[g], metadatas[g], purposes[g], attachment_lists[g], subs[g], raw_ids[g], times[g], times[g]
    from generate_series(1, cardinality(orgs)) g join counted on counted.id = in_inboxes[g] where passed[g];

    insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
    select in_threads[g], orgs[g], in_inboxes[g], thread_subjects[g], string_to_array(participant_lines[g], E'\n'), 1, times[g],
      times[g]
    from generate_series(1, cardinality(orgs)) g where passed[g] and freshness[g];

    if false = any(freshness) then
      update thread t set message_count = t.message_count + n.messages,
        last_message_at = greatest(t.last_message_at, n.latest),
        participants = join_participants(t.participants, n.participants)
      from (
        select in_threads[g] as thread, count(distinct g) as messages, max(times[g]) as latest,
          array_agg(p.email) as participants
        from generate_series(1, cardinality(orgs)) g
        left join unnest(string_to_array(participant_lines[g], E'\n')) p(email) on true
        where passed[g] and not freshness[g] group by in_threads[g]
      ) n
      where t.id = n.thread;
    end if;

    if '[]' <> any(attachment_lists) then
      insert into scan (message_id, organization_id, due_at)
      select ids[g], orgs[g], times[g] from generate_series(1, cardinality(orgs)) g
      where passed[g] and ids[g] is not null and attachment_lists[g] <> '[]';
    end if;
  end if;

  if array_position(in_inboxes, null) is not null then
    insert into send_content (submission_id, organization_id, domain_id, internet_message_id, recipients, text, html,
      headers, created_at)
    select subs[g], orgs[g], domain_ids[g], internet_ids[g], shown[g], bodies[g], htmls[g], header_sets[g], times[g]
    from generate_series(1, cardinality(orgs)) g where passed[g] and in_inboxes[g] is null;
  end if;

  insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, inbox_id,
    message_id, sender, subject, metadata, purpose, status, created_at, updated_at)
  select subs[g], orgs[g], operations[g], idempotency_keys[g], digests[g], hashes[g], in_inboxes[g], ids[g], senders[g],
    subjects[g], metadatas[g], purposes[g], 'pending', times[g], times[g]
  from generate_series(1, cardinality(orgs)) g where passed[g];

  insert into delivery (submission_id, position, organization_id, inbox_id, email, address_key, domain, route, status,
    due_at, expires_at, updated_at)
  select subs[to_sends[g]], to_positions[g], orgs[to_sends[g]], in_inboxes[to_sends[g]], to_emails[g], to_keys[g],
    to_domains[g], to_routes[g], 'pending', times[to_sends[g]], expiries[to_sends[g]], times[to_sends[g]]
  from generate_series(1, cardinality(to_sends)) g where passed[to_sends[g]];

  -- Measured: a text that is read as JSON once costs two thirds of what building the objects does.
  insert into outbox (organization_id, items, created_at)
  select orgs[g],
    ('[' || string_agg('{"id":"' || subs[g] || '","type":"message.sent","submission":"' || subs[g] || '","event":0}', ','
      order by g) || ']')::jsonb,
    max(times[g])
  from generate_series(1, cardinality(orgs)) g where passed[g] group by orgs[g];

  insert into metric_delta (organization_id, at, counts)
  select n.org, max(n.at), array_agg(row(n.fact, n.sender, n.destination, null, n.amount)::metric_count)
  from (
    select orgs[f.send] as org, hour_of(times[f.send]) as hour, max(times[f.send]) as at, f.fact,
      domain_of(senders[f.send]->>'email') as sender, f.destination, count(*) as amount
    from (
      select g as send, 'accepted' as fact, null as destination from generate_series(1, cardinality(orgs)) g
      union all
      select to_sends[g], 'recipients', to_domains[g] from generate_series(1, cardinality(to_sends)) g
    ) f
    where passed[f.send] group by 1, 2, 4, 5, 6
  ) n
  group by n.org, n.hour;

  if suppressed <> '{}' then
    perform suppress_deliveries(jsonb_agg(jsonb_build_object(
      'submission', subs[to_sends[p]], 'position', to_positions[p], 'id', uuid_v7(at))), null, at)
    from unnest(suppressed) p where passed[to_sends[p]] having count(*) > 0;
  end if;
end $$;
