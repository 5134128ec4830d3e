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

-- When a report is looked at again after it could not be read, or not yet. Those of which nothing proves whose they are, as
-- complaints, take turns with the organizations as those of one more.
alter table kept_mail add column failures integer not null default 0;
alter table kept_mail add column retry_at timestamptz;
alter table kept_mail add column due_at timestamptz not null generated always as (coalesce(retry_at, received_at)) stored;
alter table kept_mail add column turn uuid generated always as (
  case when purpose <> 'operator' then coalesce(organization_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') end) stored;
create index kept_mail_unread on kept_mail (turn, due_at) where turn is not null;
create index kept_mail_operator on kept_mail (received_at, id) where purpose = 'operator';

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
