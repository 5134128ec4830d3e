-- Updates submissions from their deliveries, appends events, announces them and counts results of recipients. No other
-- function inserts into `event`. Events are numbered under the submission's lock. A fact takes one number for each of its
-- events: `queued_at`, `began_at` and itself. Its row has the last of these numbers.
create or replace function settle_submissions(facts recipient_fact[], at timestamptz) returns void
language plpgsql
as $$
declare
  touched uuid[];
  amounts integer[];
begin
  select array_agg(n.submission), array_agg(n.amount) into touched, amounts
  from (
    select f.submission, sum(1 + num_nonnulls(f.queued_at, f.began_at)) as amount from unnest(facts) f group by f.submission
  ) n;
  perform 1 from submission s where s.id = any(touched) order by s.id for no key update;
  update submission s set
    status = case
      when x.waiting > 0 then 'pending'
      when x.delivered = x.recipients then 'delivered'
      when x.delivered > 0 then 'partially_delivered'
      else 'failed' end,
    response = x.response,
    failure_code = case when x.waiting > 0 then null else x.failure_code end,
    event_seq = s.event_seq + x.amount,
    updated_at = at
  from (
    select t.submission, t.amount, states.*
    from unnest(touched, amounts) t(submission, amount)
    cross join lateral (
      select count(*) filter (where d.status in ('pending', 'deferred')) as waiting,
        count(*) filter (where d.status = 'delivered') as delivered,
        count(*) as recipients,
        (array_agg(d.response order by d.updated_at desc, d.position) filter (where d.response is not null))[1] as response,
        (array_agg(d.failure_code order by d.position) filter (where d.failure_code is not null))[1] as failure_code
      from delivery d where d.submission_id = t.submission
    ) states
  ) x
  where s.id = x.submission;
  with inserted as (
    insert into event (submission_id, seq, id, organization_id, type, recipient, at, attempt, remote, response,
      enhanced_status, classification, queued_at, began_at, conversation)
    select s.id,
      s.event_seq - sum(f.amount) over (partition by s.id)
        + sum(f.amount) over (partition by s.id order by f.at, f.position, f.ordinality),
      f.id, s.organization_id, f.type, f.recipient, f.at, f.attempt, f.remote, f.response, f.enhanced, f.classification,
      f.queued_at, f.began_at, f.conversation
    from (select *, 1 + num_nonnulls(queued_at, began_at) as amount from unnest(facts) with ordinality) f
    join submission s on s.id = f.submission
    returning submission_id, seq, id, organization_id, type, recipient, event.at
  ), announced as (
    insert into outbox (organization_id, items, created_at)
    select organization_id, jsonb_agg(jsonb_build_object('id', id, 'submission', submission_id, 'event', seq,
      'type', 'message.' || case type when 'cancelled' then 'failed' else type end) order by submission_id, seq),
      settle_submissions.at
    from inserted where type in ('delivered', 'deferred', 'bounced', 'failed', 'cancelled', 'complained')
    group by organization_id
  )
  insert into metric_delta (organization_id, at, counts)
  select organization_id, max(latest), array_agg(row(type, sender, destination, latency, amount)::metric_count)
  from (
    select t.organization_id, hour_of(t.at) as hour, max(t.at) as latest, t.type,
      domain_of(s.sender->>'email') as sender, domain_of(t.recipient) as destination,
      case when t.type = 'delivered' then latency_bucket(t.at - s.created_at) end as latency, count(*) as amount
    from inserted t join submission s on s.id = t.submission_id
    where t.type in ('delivered', 'deferred', 'bounced', 'failed', 'cancelled', 'suppressed', 'complained')
    group by 1, 2, 4, 5, 6, 7
  ) n
  group by organization_id, hour;
end $$;
