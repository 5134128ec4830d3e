-- Ends deliveries without an attempt: waiting ones (`lease_epoch` null), or those just claimed under that epoch. They are
-- given up, cancelled or suppressed, or their inbox is deleted. An expired delivery without its own response gets the last
-- fault of its route. `ended`: array of {submission, position, id (the event's), response and enhanced (the reason, or
-- null)}. Returns how many ended.
create or replace function end_deliveries(ended jsonb, lease_epoch bigint, event_type text, code text, class text, at timestamptz)
returns integer
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
    update delivery d set status = case event_type when 'suppressed' then 'suppressed' else 'failed' end,
      failure_code = code, claim_epoch = null, attempts = d.attempts - (lease_epoch is not null)::integer, updated_at = at,
      response = case when class = 'expired'
        then coalesce(d.response, (select r.last_fault from route r where r.key = d.route and r.failures > 0))
        else coalesce(x.response, d.response) end
    from jsonb_to_recordset(ended) as x(submission uuid, position integer, id uuid, response text, enhanced text)
    -- The limit prevents a scan of all deliveries, which the planner chooses if the table was small when it planned.
    cross join lateral (
      select p.ctid from delivery p where p.submission_id = x.submission and p.position = x.position limit 1
    ) its
    where d.ctid = its.ctid and d.claim_epoch is not distinct from lease_epoch and d.status in ('pending', 'deferred')
    returning d.submission_id, d.position, d.email, d.response, x.id, x.enhanced
  )
  select jsonb_agg(jsonb_build_object('submission', u.submission_id, 'position', u.position, 'id', u.id,
    'type', event_type, 'recipient', u.email, 'at', at, 'response', u.response, 'enhanced', u.enhanced,
    'classification', class))
  into facts from updated u;
  if facts is null then return 0; end if;
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::recipient_fact, facts) f), at);
  return jsonb_array_length(facts);
end $$;
