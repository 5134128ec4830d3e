-- Records how claimed deliveries ended. A result counts only under the epoch that claimed it and still owns the route;
-- returns the places, from 1, of the results that counted. A batch comes as columns, one element a result (its status is
-- null where it was not tried: the claim is given back), then one element a fact, with the place of its result.
create or replace function record_results(at timestamptz,
  submissions uuid[], positions integer[], routes text[], epochs bigint[], statuses text[], due_times timestamptz[],
  responses text[], failure_codes text[], fault_counts integer[],
  fact_results integer[], fact_ids uuid[], fact_types text[], fact_recipients text[], fact_times timestamptz[],
  fact_attempts integer[], fact_remotes jsonb[], fact_responses text[], fact_enhanced text[], fact_classes text[])
returns setof integer
language plpgsql
as $$
declare
  counted integer[];
  facts fact[];
begin
  perform 1 from route r where r.key = any(routes) order by r.key for share;
  with locked as materialized (
    select d.submission_id, d.position, x.ordinal
    from unnest(submissions, positions, routes, epochs) with ordinality x(submission, position, route, epoch, ordinal)
    join route r on r.key = x.route and r.epoch = x.epoch
    join delivery d on d.submission_id = x.submission and d.position = x.position
    -- Not written so that an index of what is on the wire could come into question.
    where d.claim_epoch is not distinct from x.epoch and d.route is not distinct from x.route
    order by d.submission_id, d.position for update of d
  ), updated as (
    update delivery d set
      claim_epoch = null,
      status = coalesce(statuses[l.ordinal], d.status),
      attempts = d.attempts - (statuses[l.ordinal] is null)::integer,
      due_at = coalesce(due_times[l.ordinal], d.due_at),
      response = case when statuses[l.ordinal] is null then d.response else responses[l.ordinal] end,
      failure_code = failure_codes[l.ordinal],
      own_faults = coalesce(fault_counts[l.ordinal], d.own_faults),
      updated_at = case when statuses[l.ordinal] is null then d.updated_at else record_results.at end
    from locked l where d.submission_id = l.submission_id and d.position = l.position
    returning l.ordinal
  )
  select array_agg(ordinal) into counted from updated;
  select array_agg(row(submissions[x.ordinal], positions[x.ordinal], x.step, x.id, x.type, x.recipient, x.at, x.attempt, x.remote,
    x.response, x.enhanced, x.class)::fact)
  into facts
  from unnest(fact_results, fact_ids, fact_types, fact_recipients, fact_times, fact_attempts, fact_remotes, fact_responses,
    fact_enhanced, fact_classes) with ordinality
    x(ordinal, id, type, recipient, at, attempt, remote, response, enhanced, class, step)
  where x.ordinal = any(counted);
  if facts is not null then perform settle_submissions(facts, at); end if;
  return query select unnest(counted);
end $$;
