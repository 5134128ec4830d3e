-- Addresses that are not written to any more, complaints about what was sent, and the reports that tell of both.

-- Matched by the key of `sameAddressKey`. The id gives the order of the list: newest first.
create table suppression (
  organization_id uuid not null references organization,
  address_key text not null,
  id uuid not null,
  email text not null,
  reason text not null check (reason in ('manual', 'hard_bounce', 'complaint', 'unsubscribe')),
  submission_id uuid,
  created_at timestamptz not null,
  primary key (organization_id, address_key)
);
create unique index suppression_recent on suppression (organization_id, id);

-- One for each recipient of a submission and kind of report: a report that comes again is the same complaint.
create table complaint (
  id uuid primary key,
  organization_id uuid not null references organization,
  submission_id uuid not null,
  message_id text,
  email text not null,
  address_key text not null,
  feedback_type text not null check (feedback_type in ('abuse', 'fraud', 'virus', 'not-spam', 'other')),
  user_agent text,
  reported_by text,
  arrived_at timestamptz not null,
  created_at timestamptz not null
);
create index complaint_recent on complaint (organization_id, id);
create unique index complaint_once on complaint (submission_id, address_key, feedback_type);

-- When a report is looked at again after it could not be read, or not yet.
alter table kept_mail add column failures integer not null default 0;
alter table kept_mail add column retry_at timestamptz;
create function turn_of(organization_id uuid) returns uuid
language sql immutable parallel safe
as $$ select coalesce(organization_id, '00000000-0000-0000-0000-000000000000') $$;
create index kept_mail_unread on kept_mail (turn_of(organization_id), (coalesce(retry_at, received_at)))
  where purpose <> 'operator';
create index kept_mail_operator on kept_mail (received_at, id) where purpose = 'operator';

-- Up to 32 organizations with reports that are due, as find_spool_turns finds those with mail.
create function find_report_turns(at timestamptz, behind uuid, out turns uuid[], out last uuid)
language plpgsql
set enable_seqscan = off
set enable_sort = off
as $$
declare
  next uuid;
  is_round boolean := behind is null;
begin
  turns := '{}';
  last := behind;
  for probe in 1 .. 34 loop
    select turn_of(k.organization_id) into next from kept_mail k
    where k.purpose <> 'operator' and (last is null or turn_of(k.organization_id) > last)
      and coalesce(k.retry_at, k.received_at) <= at
    order by turn_of(k.organization_id) limit 1;
    if not found then
      exit when is_round;
      is_round := true;
      last := null;
      continue;
    end if;
    exit when is_round and behind is not null and next > behind;
    last := next;
    turns := turns || next;
    exit when cardinality(turns) = 32;
  end loop;
end $$;

-- Locks reports that nobody else reads, as claim_spool does with mail to be filed: the organizations whose mail is reported
-- take turns, and those of which nothing proves whose they are, as complaints, are one of them.
create function claim_reports(at timestamptz, wanted integer, most_bytes bigint, behind uuid,
  out claimed text[], out last uuid, out is_more boolean)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
  turns uuid[];
  candidate record;
  share integer;
  taken integer;
  bytes bigint := 0;
begin
  claimed := '{}';
  select * into turns, last from find_report_turns(at, behind);
  is_more := cardinality(turns) = 32;
  for place in 1 .. cardinality(turns) loop
    share := greatest(1, (wanted - cardinality(claimed)) / (cardinality(turns) - place + 1));
    taken := 0;
    for candidate in
      select k.id, k.failures, k.size_bytes from kept_mail k
      where k.purpose <> 'operator' and turn_of(k.organization_id) = turns[place]
        and coalesce(k.retry_at, k.received_at) <= at
      order by coalesce(k.retry_at, k.received_at) limit 4096
    loop
      if taken = share or claimed <> '{}' and (bytes + candidate.size_bytes > most_bytes or candidate.failures > 0) then
        is_more := true;
        exit;
      end if;
      -- 0x6b657074 is "kept".
      continue when not pg_try_advisory_xact_lock(1801810036, hashtext(candidate.id));
      claimed := claimed || candidate.id;
      bytes := bytes + candidate.size_bytes;
      taken := taken + 1;
      last := turns[place];
      if candidate.failures > 0 then
        is_more := true;
        return;
      end if;
    end loop;
    if cardinality(claimed) >= wanted then
      is_more := is_more or place < cardinality(turns);
      return;
    end if;
  end loop;
end $$;

-- Adds suppressions and tells their organizations; answers the rows that are new. In the order of the key, so that two
-- batches never wait for each other. `added`: array of {id, org, key, email, reason, submission}.
create function add_suppressions(added jsonb, at timestamptz) returns setof suppression
language plpgsql
as $$
declare
  r suppression;
  told jsonb := '[]';
begin
  for r in
    insert into suppression (organization_id, address_key, id, email, reason, submission_id, created_at)
    select distinct on (x.org, x.key) x.org, x.key, x.id, x.email, x.reason, x.submission, at
    from jsonb_to_recordset(added) as x(id uuid, org uuid, key text, email text, reason text, submission uuid)
    order by x.org, x.key, x.id
    on conflict (organization_id, address_key) do nothing
    returning *
  loop
    told := told || jsonb_build_object('org', r.organization_id, 'id', uuid_v7(at), 'type', 'suppression.created',
      'content', jsonb_build_object('suppression', jsonb_build_object('email', r.email, 'reason', r.reason,
        'submissionId', r.submission_id,
        'createdAt', to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))));
    return next r;
  end loop;
  if told <> '[]' then perform append_outbox(told, at); end if;
end $$;

-- Suppresses the recipients that `facts` names, in the organization of each; answers how many are new.
-- `facts`: array of {id (the suppression's), submission, position, reason}.
create function suppress_addresses(facts jsonb, at timestamptz) returns integer
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  added jsonb;
begin
  select jsonb_agg(jsonb_build_object('id', f.id, 'org', d.organization_id, 'key', d.address_key, 'email', d.email,
    'reason', f.reason, 'submission', d.submission_id))
  into added
  from jsonb_to_recordset(facts) as f(id uuid, submission uuid, position integer, reason text)
  join delivery d on d.submission_id = f.submission and d.position = f.position;
  if added is null then return 0; end if;
  return (select count(*) from add_suppressions(added, at));
end $$;

-- Ends deliveries as suppressed, without an attempt: those that wait (`lease_epoch` null), or those that were just
-- claimed under that epoch. `ended`: array of {submission, position, id (the event's)}; answers how many ended.
create function suppress_deliveries(ended jsonb, lease_epoch bigint, at timestamptz) returns integer
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
    update delivery d set status = 'suppressed', failure_code = 'suppressed', claim_epoch = null,
      attempts = d.attempts - (lease_epoch is not null)::integer, updated_at = at
    from jsonb_to_recordset(ended) as x(submission uuid, position integer, id uuid)
    -- The limit keeps the plan from looking through all deliveries, which were few when it was made.
    cross join lateral (
      select p.ctid from delivery p where p.submission_id = x.submission and p.position = x.position limit 1
    ) its
    where d.ctid = its.ctid and d.claim_epoch is not distinct from lease_epoch and d.status in ('pending', 'deferred')
    returning d.submission_id, d.position, d.email, d.response, x.id
  )
  select jsonb_agg(jsonb_build_object('submission', u.submission_id, 'position', u.position, 'step', 1, 'id', u.id,
    'type', 'suppressed', 'recipient', u.email, 'at', at, 'response', u.response))
  into facts from updated u;
  if facts is null then return 0; end if;
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::fact, facts) f), at);
  return jsonb_array_length(facts);
end $$;

-- Locks the deliveries that reports are about, in order, and answers them. `places`: array of {submission, position}. A
-- delay that a report told has a response and no attempt.
create function lock_reported(places jsonb)
returns table (submission_id uuid, place integer, organization_id uuid, message_id text, email text, address_key text,
  status text, on_wire boolean, is_delay_told boolean)
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform 1 from delivery d
    join (select distinct submission, position from jsonb_to_recordset(places) as x(submission uuid, position integer)) p
      on d.submission_id = p.submission and d.position = p.position
    order by d.submission_id, d.position for update of d;
  return query
  -- The events are looked through once for a submission, not for each of perhaps a thousand recipients.
  with reported as materialized (
    select s.id, s.message_id, array(select e.recipient from event e where e.submission_id = s.id
      and e.type = 'deferred' and e.attempt is null and e.response is not null) as delayed
    from (select distinct submission from jsonb_to_recordset(places) as x(submission uuid)) p
    join submission s on s.id = p.submission
  )
  select d.submission_id, d.position, d.organization_id, r.message_id, d.email, d.address_key, d.status,
    d.claim_epoch is not null, d.email = any(r.delayed)
  from reported r
  join (select distinct submission, position from jsonb_to_recordset(places) as x(submission uuid, position integer)) p
    on p.submission = r.id
  join delivery d on d.submission_id = p.submission and d.position = p.position;
end $$;

-- Records what reports say of deliveries whose rows the caller has locked. `facts`: array of facts, with failure_code where
-- the type is bounced.
create function record_reports(facts jsonb, at timestamptz) returns void
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  update delivery d set status = 'bounced', response = x.response, failure_code = x.failure_code, updated_at = at
  from jsonb_to_recordset(facts) as x(submission uuid, position integer, type text, response text, failure_code text)
  where d.submission_id = x.submission and d.position = x.position and x.type = 'bounced';
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::fact, facts) f), at);
end $$;
