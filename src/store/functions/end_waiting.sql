-- Ends deliveries that wait: given up, cancelled, their inbox deleted. What is on the wire is left alone. What is given up
-- without an answer of its own has the last fault of the way as its response.
-- `ended`: array of {submission, position, id (the event's)}; returns how many ended.
create or replace function end_waiting(ended jsonb, code text, event_type text, class text, at timestamptz) returns integer
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
