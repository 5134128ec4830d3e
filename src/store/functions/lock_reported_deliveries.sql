-- Locks the deliveries that reports are about, in order, and returns them. `keys`: array of {submission, position}. A
-- `deferred` event that came from a report has a response and no attempt.
create or replace function lock_reported_deliveries(keys jsonb)
returns table (submission_id uuid, ordinal integer, organization_id uuid, message_id text, email text, address_key text,
  status text, is_on_wire boolean, is_delay_published boolean)
language plpgsql
as $$
begin
  perform 1 from delivery d
    join (select distinct submission, position from jsonb_to_recordset(keys) as x(submission uuid, position integer)) p
      on d.submission_id = p.submission and d.position = p.position
    order by d.submission_id, d.position for update of d;
  return query
  -- Reads the events once per submission, not once for each of perhaps a thousand recipients.
  with reported as materialized (
    select s.id, s.message_id, array(select e.recipient from event e where e.submission_id = s.id
      and e.type = 'deferred' and e.attempt is null and e.response is not null) as delayed
    from (select distinct submission from jsonb_to_recordset(keys) as x(submission uuid)) p
    join submission s on s.id = p.submission
  )
  select d.submission_id, d.position, d.organization_id, r.message_id, d.email, d.address_key, d.status,
    d.claim_epoch is not null, d.email = any(r.delayed)
  from reported r
  join (select distinct submission, position from jsonb_to_recordset(keys) as x(submission uuid, position integer)) p
    on p.submission = r.id
  join delivery d on d.submission_id = p.submission and d.position = p.position;
end $$;
