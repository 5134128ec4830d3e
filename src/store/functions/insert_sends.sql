-- Writes the submissions of the sends that passed, with their deliveries, events and metrics. The columns are those of the
-- batch that `decide_sends` decided over. `suppressed`: the ordinals of the recipients that it found suppressed.
create or replace function insert_sends(
  at timestamptz, passed boolean[], suppressed integer[], orgs uuid[], digests bytea[], hashes bytea[], in_inboxes text[],
  subs uuid[], operations text[], idempotency_keys text[], ids text[], senders jsonb[], subjects text[], metadatas jsonb[],
  purposes text[], times timestamptz[], expiries timestamptz[],
  to_sends integer[], to_positions integer[], to_emails text[], to_keys text[], to_domains text[], to_routes text[])
returns void
language plpgsql
as $$
begin
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

  -- Measured: building a text and parsing it as JSON once costs two thirds of building JSON objects.
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
    perform end_deliveries(jsonb_agg(jsonb_build_object(
      'submission', subs[to_sends[p]], 'position', to_positions[p], 'id', uuid_v7(at))), null, 'suppressed', 'suppressed', null, at)
    from unnest(suppressed) p where passed[to_sends[p]] having count(*) > 0;
  end if;
end $$;
