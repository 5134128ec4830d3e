-- Checks a batch of sends against all but the limits. Takes no lock and writes nothing. The columns are those of
-- `decide_sends`. `verdicts`: `accepted` (by an earlier run of the batch), `replayed`, the code of a refusal, or null if
-- the limits decide. `earlier`: the submission under the send's idempotency key. `counts`: how many of the send's
-- recipients are not suppressed. These three columns have one element per send. `hits`: the ordinals of the suppressed
-- recipients in the batch.
create or replace function check_sends(
  at timestamptz, orgs uuid[], keys uuid[], digests bytea[], hashes bytea[], in_inboxes text[], replied_threads text[],
  subs uuid[], recipient_counts integer[], to_sends integer[], to_keys text[],
  out verdicts text[], out earlier uuid[], out counts integer[], out hits integer[])
language plpgsql stable
as $$
begin
  -- The limit forces one index probe per recipient; the planner cannot choose another join.
  hits := array(select d.n from unnest(to_sends, to_keys) with ordinality d(send, key, n) cross join lateral (
    select from suppression s where s.organization_id = orgs[d.send] and s.address_key = d.key limit 1) found);
  counts := recipient_counts;
  if hits <> '{}' then
    counts := array(
      select recipient_counts[g] - (select count(*) from unnest(hits) n where to_sends[n] = g)::integer
      from generate_series(1, cardinality(orgs)) g order by g);
  end if;

  -- Measured: keys and organizations are read once, other data only for sends that need it. This takes a third less time
  -- than joins.
  select array_agg(
    case
      -- The answer to an earlier run of the batch was lost. Its sends stay accepted, even if the key has changed since.
      when s.id = subs[g] then 'accepted'
      -- A send without a key is the service's own.
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
      when counts[g] = 0 then 'all_recipients_suppressed'
    end order by g), array_agg(s.id order by g)
  into verdicts, earlier
  from generate_series(1, cardinality(orgs)) g left join submission s on s.idempotency_digest = digests[g];
end $$;
