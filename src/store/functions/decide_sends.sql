-- Decides over a batch of sends and counts those that pass. It comes as columns: one element a send, and one a recipient
-- (`to_…`) with the ordinal of its send, from 1. Returns a row a send, in order: `accepted`, `replayed` or the code of a
-- refusal, whether it has to be written, and its recipients that are suppressed, by their ordinals in the batch. The limits of
-- an organization neither count nor refuse an uncounted send.
create or replace function decide_sends(
  at timestamptz, orgs uuid[], keys uuid[], digests bytea[], hashes bytea[], in_inboxes text[], replied_threads text[],
  subs uuid[], recipient_counts integer[], to_sends integer[], to_keys text[], are_uncounted boolean[])
returns table (i integer, verdict text, is_new boolean, submission_id uuid, retry_after integer, suppressed integer[])
language plpgsql
as $$
declare
  verdicts text[];
  earlier uuid[];
  waits integer[] := array_fill(null::integer, array[cardinality(orgs)]);
  hits integer[];
  counted uuid[];
begin
  -- Nobody else counts before this commits. Whoever waited for the lock sees what is below as it is after it.
  perform 1 from usage u where u.organization_id = any(orgs) order by u.organization_id for update;
  if array_remove(in_inboxes, null) <> '{}' then
    perform 1 from inbox b where b.id = any(in_inboxes) order by b.id for no key update;
  end if;

  -- The limit keeps the plan from joining in any other way than by a probe of the index for each.
  hits := array(select d.n from unnest(to_sends, to_keys) with ordinality d(send, key, n) cross join lateral (
    select from suppression s where s.organization_id = orgs[d.send] and s.address_key = d.key limit 1) found);
  if hits <> '{}' then
    recipient_counts := array(
      select recipient_counts[g] - (select count(*) from unnest(hits) n where to_sends[n] = g)::integer
      from generate_series(1, cardinality(orgs)) g order by g);
  end if;

  -- Measured: keys and organizations are read once each, and what few sends need only for those: a third less than joins.
  select array_agg(
    case
      -- The answer to an earlier run of the batch was lost: what it committed stays accepted, whatever became of the key.
      when s.id = subs[g] then 'accepted'
      -- Without a key it is the service itself that sends.
      when keys[g] is not null and keys[g] not in (select k.id from api_key k
        where k.id = any(keys) and k.revoked_at is null and (k.expires_at is null or k.expires_at > at)) then 'unauthorized'
      when orgs[g] not in (select o.id from organization o where o.id = any(orgs) and o.status = 'active')
        then 'organization_inactive'
      when s.result_deleted or s.inbox_id is not null
        and (select b.status from inbox b where b.id = s.inbox_id) = 'deleted' then 'idempotency_result_expired'
      when s.request_hash = hashes[g] then 'replayed'
      when s.id is not null then 'idempotency_key_reused'
      when in_inboxes[g] is not null and (select b.status = 'active' and b.organization_id = orgs[g]
        from inbox b where b.id = in_inboxes[g]) is not true then 'not_found'
      when replied_threads[g] is not null and (select t.inbox_id = in_inboxes[g]
        from thread t where t.id = replied_threads[g]) is not true then 'not_found'
      when recipient_counts[g] = 0 then 'all_recipients_suppressed'
    end order by g), array_agg(s.id order by g)
  into verdicts, earlier
  from generate_series(1, cardinality(orgs)) g left join submission s on s.idempotency_digest = digests[g];

  counted := array(select count_sends(array_agg(n.org order by n.org), array_agg(n.messages order by n.org),
    array_agg(n.recipients order by n.org), at)
    from (select orgs[g] as org, count(*)::integer as messages, sum(recipient_counts[g])::integer as recipients
      from generate_series(1, cardinality(orgs)) g where verdicts[g] is null and not are_uncounted[g] group by 1) n);
  -- Where not all may pass, those that come first do.
  for i in select g from generate_series(1, cardinality(orgs)) g
    where verdicts[g] is null and not are_uncounted[g] and orgs[g] <> all(counted) order by orgs[g], g
  loop
    continue when exists (select count_sends(orgs[i:i], '{1}', recipient_counts[i:i], at));
    verdicts[i] := 'send_limit_exceeded';
    waits[i] := (select send_wait(o.limits, u, 1, recipient_counts[i], at)
      from usage u join organization o on o.id = u.organization_id where u.organization_id = orgs[i]);
  end loop;

  return query select g, coalesce(verdicts[g], 'accepted'), verdicts[g] is null, coalesce(earlier[g], subs[g]), waits[g],
    case when hits = '{}' then hits else array(select n from unnest(hits) n where to_sends[n] = g) end
  from generate_series(1, cardinality(orgs)) g order by g;
end $$;
