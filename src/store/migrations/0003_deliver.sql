-- Delivery: claims, results and endings, each one call a batch.

-- Whose turn it is in a queue: up to `most` active organizations with due mail of one status. The look goes round, from the
-- organization after `place` up to `until`, where it began, and passes 32 organizations at most, however many there are.
-- What a suspended organization has waiting is held. Those of `passed_over` have no turn: enough of theirs has been taken.
-- `due_ms` is the earliest head that was seen, due or not; `is_over`: there is nobody left to look at.
create function take_turns(route_key text, lane text, at timestamptz, until uuid, passed_over uuid[], most integer,
  inout place uuid, out organizations uuid[], out due_ms double precision, out is_over boolean)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  nobody constant uuid := '00000000-0000-0000-0000-000000000000';
  head record;
begin
  organizations := '{}';
  is_over := place is null;
  for probe in 1..32 loop
    exit when is_over or cardinality(organizations) >= most;
    select d.organization_id as id, d.due_at,
      (select o.status from organization o where o.id = d.organization_id) as standing into head
    from delivery d
    where d.route = route_key and d.status = lane and d.organization_id > place and d.expires_at > at
      and d.claim_epoch is null and d.status in ('pending', 'deferred')
    order by d.organization_id, d.due_at limit 1;
    if found and (place >= until or head.id <= until) then
      place := head.id;
      is_over := place = until;
      continue when head.standing is distinct from 'active';
      due_ms := least(due_ms, extract(epoch from head.due_at) * 1000);
      if head.due_at <= at and head.id <> all(passed_over) then organizations := organizations || head.id; end if;
    elsif place >= until and until <> nobody then
      place := nobody;
    else
      is_over := true;
    end if;
  end loop;
end $$;

-- Takes up to `wanted` due deliveries of a route onto the wire, and answers with them what each submission's message is
-- composed of, at the first of its deliveries. Organizations with due mail take turns, so that one with a long queue
-- delays nobody else's single message: what was never tried from the one after `fresh`, what waited for its next attempt,
-- which a quarter is kept for, from the one after `later`, each with where its round began; none of what is null. The first
-- row, of no submission, says what was seen and where to go on.
-- Claiming is the attempt's record. Nothing is taken under an epoch that has passed, or out of a paused queue; the lock on
-- the route keeps both from changing meanwhile. What was suppressed until then is marked.
-- Measured, two at a time on a busy machine: 1.5 ms where 1,000 organizations wait as where one does, against 39 ms of a look
-- at all of them.
create function claim_deliveries(route_key text, lease_epoch bigint, at timestamptz, wanted integer, passed_over uuid[],
  fresh uuid, fresh_until uuid, later uuid, later_until uuid)
returns table (submission_id uuid, "position" integer, organization_id uuid, email text, attempts integer,
  own_faults integer, queued_at timestamptz, expires_at timestamptz, suppressed boolean, has_inbox boolean, internet_message_id text,
  in_reply_to text, reference_ids text[], sender jsonb, recipients jsonb, subject text, body text, html text,
  attachments jsonb, raw_id uuid, headers jsonb, created_at timestamptz, seen jsonb)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
declare
  fresh_turns record;
  later_turns record;
begin
  perform from route r where r.key = route_key and r.epoch = lease_epoch and not r.paused for share;
  if not found then return; end if;
  select * into fresh_turns
  from take_turns(route_key, 'pending', at, fresh_until, passed_over, greatest(wanted - wanted / 4, 1), fresh);
  select * into later_turns
  from take_turns(route_key, 'deferred', at, later_until, passed_over,
    greatest(wanted - cardinality(fresh_turns.organizations), 1), later);
  seen := jsonb_build_object('fresh', fresh_turns, 'later', later_turns);
  return next;
  if wanted = 0 or fresh_turns.organizations || later_turns.organizations = '{}' then return; end if;
  return query
  with chosen as materialized (
    select w.submission_id, w.position from (
      select id, 'pending' as lane from unnest(fresh_turns.organizations) id
      union all
      select id, 'deferred' from unnest(later_turns.organizations) id
    ) o cross join lateral (
      -- By rows: PostgreSQL 15 would read all that are due at one moment before it numbers the first.
      select d.submission_id, d.position, row_number() over (order by d.due_at rows unbounded preceding) as turn
      from delivery d
      where d.route = route_key and d.status = o.lane and d.organization_id = o.id
        and d.claim_epoch is null and d.status in ('pending', 'deferred') and d.due_at <= at and d.expires_at > at
      order by d.due_at limit wanted
    ) w
    order by w.turn, random() limit wanted
  ), locked as materialized (
    select d.ctid from chosen c join delivery d on d.submission_id = c.submission_id and d.position = c.position
    -- Not written as it stands in the partial indexes: only the primary key may come into question here.
    where d.claim_epoch is null and d.status not in ('delivered', 'bounced', 'failed', 'suppressed')
      and (select b.status from inbox b where b.id = d.inbox_id) is distinct from 'deleted'
    for update of d skip locked
  ), claimed as (
    update delivery d set claim_epoch = lease_epoch, attempts = d.attempts + 1, queued_at = coalesce(d.queued_at, at),
      updated_at = at
    from locked l where d.ctid = l.ctid
    returning d.*
  )
  select c.submission_id, c.position, c.organization_id, c.email, c.attempts, c.own_faults, c.queued_at, c.expires_at,
    u.found is not null, m.id is not null, coalesce(m.internet_message_id, x.internet_message_id), m.in_reply_to, m.reference_ids, s.sender,
    coalesce(m.recipients, x.recipients), s.subject, coalesce(m.text, x.text), coalesce(m.html, x.html), m.attachments,
    m.raw_id, x.headers, coalesce(m.created_at, x.created_at),
    null::jsonb
  from (
    select *, row_number() over (partition by submission_id order by position) = 1 as is_first from claimed
  ) c
  left join lateral (
    select true as found from suppression p
    where p.organization_id = c.organization_id and p.address_key = c.address_key limit 1
  ) u on true
  left join submission s on s.id = c.submission_id and c.is_first
  left join message m on m.id = s.message_id
  left join send_content x on x.submission_id = s.id and s.message_id is null;
end $$;

-- An event to come of one recipient of a submission; `step` orders those of one moment.
create type fact as (submission uuid, "position" integer, step integer, id uuid, type text, recipient text, at timestamptz,
  attempt integer, remote jsonb, response text, enhanced text, classification text);

-- Brings submissions in line with their deliveries, appends events, numbered under the submission's lock, tells of them
-- and counts what became of recipients: all that is told to customers goes through here.
create function settle_submissions(facts fact[], at timestamptz) returns void
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
declare
  touched uuid[];
  amounts integer[];
begin
  select array_agg(n.submission), array_agg(n.amount) into touched, amounts
  from (select f.submission, count(*) as amount from unnest(facts) f group by f.submission) n;
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
  with told as (
    insert into event (submission_id, seq, id, organization_id, type, recipient, at, attempt, remote, response,
      enhanced_status, classification)
    select s.id,
      s.event_seq - count(*) over (partition by s.id) + row_number() over (partition by s.id order by f.at, f.position, f.step),
      f.id, s.organization_id, f.type, f.recipient, f.at, f.attempt, f.remote, f.response, f.enhanced, f.classification
    from unnest(facts) f join submission s on s.id = f.submission
    returning submission_id, seq, id, organization_id, type, recipient, event.at
  ), announced as (
    insert into outbox (organization_id, items, created_at)
    select organization_id, jsonb_agg(jsonb_build_object('id', id, 'submission', submission_id, 'event', seq,
      'type', 'message.' || case type when 'cancelled' then 'failed' else type end) order by submission_id, seq),
      settle_submissions.at
    from told where type in ('delivered', 'deferred', 'bounced', 'failed', 'cancelled', 'complained')
    group by organization_id
  )
  insert into metric_delta (organization_id, at, counts)
  select organization_id, max(latest), array_agg(row(type, sender, destination, latency, amount)::metric_count)
  from (
    select t.organization_id, hour_of(t.at) as hour, max(t.at) as latest, t.type,
      domain_of(s.sender->>'email') as sender, domain_of(t.recipient) as destination,
      case when t.type = 'delivered' then latency_bucket(t.at - s.created_at) end as latency, count(*) as amount
    from told t join submission s on s.id = t.submission_id
    where t.type in ('delivered', 'deferred', 'bounced', 'failed', 'cancelled', 'suppressed', 'complained')
    group by 1, 2, 4, 5, 6, 7
  ) n
  group by organization_id, hour;
end $$;

-- Records how claimed deliveries ended. A result counts only under the epoch that claimed it and still owns the route;
-- answers the places, from 1, of the results that counted. A batch comes as columns, one element a result (its status is
-- null where it was not tried: the claim is given back), then one element a fact, with the place of its result.
create function record_results(at timestamptz,
  submissions uuid[], positions integer[], routes text[], epochs bigint[], statuses text[], due_times timestamptz[],
  responses text[], failure_codes text[], fault_counts integer[],
  fact_results integer[], fact_ids uuid[], fact_types text[], fact_recipients text[], fact_times timestamptz[],
  fact_attempts integer[], fact_remotes jsonb[], fact_responses text[], fact_enhanced text[], fact_classes text[])
returns setof integer
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
declare
  counted integer[];
  facts fact[];
begin
  perform 1 from route r where r.key = any(routes) order by r.key for share;
  with locked as materialized (
    select d.submission_id, d.position, x.place
    from unnest(submissions, positions, routes, epochs) with ordinality x(submission, position, route, epoch, place)
    join route r on r.key = x.route and r.epoch = x.epoch
    join delivery d on d.submission_id = x.submission and d.position = x.position
    -- Not written so that an index of what is on the wire could come into question.
    where d.claim_epoch is not distinct from x.epoch and d.route is not distinct from x.route
    order by d.submission_id, d.position for update of d
  ), updated as (
    update delivery d set
      claim_epoch = null,
      status = coalesce(statuses[l.place], d.status),
      attempts = d.attempts - (statuses[l.place] is null)::integer,
      due_at = coalesce(due_times[l.place], d.due_at),
      response = case when statuses[l.place] is null then d.response else responses[l.place] end,
      failure_code = failure_codes[l.place],
      own_faults = coalesce(fault_counts[l.place], d.own_faults),
      updated_at = case when statuses[l.place] is null then d.updated_at else record_results.at end
    from locked l where d.submission_id = l.submission_id and d.position = l.position
    returning l.place
  )
  select array_agg(place) into counted from updated;
  select array_agg(row(submissions[x.place], positions[x.place], x.step, x.id, x.type, x.recipient, x.at, x.attempt, x.remote,
    x.response, x.enhanced, x.class)::fact)
  into facts
  from unnest(fact_results, fact_ids, fact_types, fact_recipients, fact_times, fact_attempts, fact_remotes, fact_responses,
    fact_enhanced, fact_classes) with ordinality
    x(place, id, type, recipient, at, attempt, remote, response, enhanced, class, step)
  where x.place = any(counted);
  if facts is not null then perform settle_submissions(facts, at); end if;
  return query select unnest(counted);
end $$;

-- Ends deliveries that wait: given up, cancelled, their inbox deleted. What is on the wire is left alone. What is given up
-- without an answer of its own has the last fault of the way as its response.
-- `ended`: array of {submission, position, id (the event's)}; answers how many ended.
create function end_waiting(ended jsonb, code text, event_type text, class text, at timestamptz) returns integer
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  facts jsonb;
begin
  perform 1 from delivery d
    join jsonb_to_recordset(ended) as x(submission uuid, position integer)
      on d.submission_id = x.submission and d.position = x.position
    order by d.submission_id, d.position for update of d;
  with updated as (
    update delivery d set status = 'failed', failure_code = code, updated_at = at,
      response = case when class = 'expired'
        then coalesce(d.response, (select r.last_fault from route r where r.key = d.route and r.failures > 0))
        else d.response end
    from jsonb_to_recordset(ended) as x(submission uuid, position integer, id uuid)
    where d.submission_id = x.submission and d.position = x.position
      and d.claim_epoch is null and d.status in ('pending', 'deferred')
    returning d.submission_id, d.position, d.email, d.response, x.id
  )
  select jsonb_agg(jsonb_build_object('submission', u.submission_id, 'position', u.position, 'step', 1, 'id', u.id,
    'type', event_type, 'recipient', u.email, 'at', at, 'response', u.response, 'classification', class))
  into facts from updated u;
  if facts is null then return 0; end if;
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::fact, facts) f), at);
  return jsonb_array_length(facts);
end $$;

-- Gives back what earlier owners of the route had on the wire when they were lost: tried again, with the lost
-- attempt told as an event whose end nobody knows.
create function reclaim_orphans(route_key text, lease_epoch bigint, at timestamptz) returns integer
language plpgsql
set enable_seqscan = off
as $$
declare
  facts jsonb;
begin
  perform 1 from delivery d where d.route = route_key and d.claim_epoch < lease_epoch
    order by d.submission_id, d.position for update;
  with updated as (
    update delivery d set claim_epoch = null, due_at = at, updated_at = at
    where d.route = route_key and d.claim_epoch < lease_epoch
    returning d.submission_id, d.position, d.email, d.attempts
  )
  select jsonb_agg(jsonb_build_object('submission', u.submission_id, 'position', u.position, 'step', 1,
    'id', gen_random_uuid(), 'type', 'attempted', 'recipient', u.email, 'at', at, 'attempt', u.attempts,
    'classification', 'other'))
  into facts from updated u;
  if facts is null then return 0; end if;
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::fact, facts) f), at);
  return jsonb_array_length(facts);
end $$;
