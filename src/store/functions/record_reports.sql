-- Records the facts of reports about deliveries whose rows the caller has locked. `facts`: array of facts, with failure_code
-- if the type is bounced.
create or replace function record_reports(facts jsonb, at timestamptz) returns void
language plpgsql
as $$
begin
  update delivery d set status = 'bounced', response = x.response, failure_code = x.failure_code, updated_at = at
  from jsonb_to_recordset(facts) as x(submission uuid, position integer, type text, response text, failure_code text)
  where d.submission_id = x.submission and d.position = x.position and x.type = 'bounced';
  perform settle_submissions(array(select f from jsonb_populate_recordset(null::recipient_fact, facts) f), at);
end $$;
