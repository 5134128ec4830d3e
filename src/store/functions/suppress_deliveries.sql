-- Ends deliveries as suppressed, without an attempt: those that wait (`lease_epoch` null), or those that were just
-- claimed under that epoch. `ended`: array of {submission, position, id (the event's)}; returns how many ended.
create or replace function suppress_deliveries(ended jsonb, lease_epoch bigint, at timestamptz) returns integer
language plpgsql
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
