-- Records the results of claimed deliveries. A result counts only under the epoch that claimed the delivery and still owns
-- the route. Returns the ordinals, from 1, of the results that counted. A batch comes as columns, one element per result.
-- If a delivery was not tried, its status and the event columns from `ids` on are null, and the claim is given back. The
-- route is not locked, because its lease could not be renewed while results waited for a lock. The lock on the delivery is
-- enough, because a new owner reclaims under the same lock. The later of the two finds no claim.
create or replace function record_results(at timestamptz,
  submissions uuid[], positions integer[], routes text[], epochs bigint[], statuses text[], due_times timestamptz[],
  responses text[], failure_codes text[], fault_counts integer[],
  ids uuid[], types text[], times timestamptz[], attempts integer[], remotes jsonb[], enhanced text[], classes text[],
  queued_times timestamptz[], began_times timestamptz[], conversations text[])
returns setof integer
language plpgsql
as $$
declare
  counted integer[];
  facts recipient_fact[];
begin
  with locked as materialized (
    select x.*
    from unnest(submissions, positions, routes, epochs, statuses, due_times, responses, failure_codes, fault_counts, ids,
      types, times, attempts, remotes, enhanced, classes, queued_times, began_times, conversations) with ordinality
      x(submission, position, route, epoch, status, due_at, response, failure_code, own_faults, id,
        type, at, attempt, remote, enhanced, class, queued_at, began_at, conversation, ordinal)
    join route r on r.key = x.route and r.epoch = x.epoch
    join delivery d on d.submission_id = x.submission and d.position = x.position
    -- Deliberately written so that the planner cannot use an index of claimed deliveries.
    where d.claim_epoch is not distinct from x.epoch and d.route is not distinct from x.route
    order by d.submission_id, d.position for update of d
  ), updated as (
    update delivery d set
      claim_epoch = null,
      status = coalesce(l.status, d.status),
      attempts = d.attempts - (l.status is null)::integer,
      due_at = coalesce(l.due_at, d.due_at),
      response = case when l.status is null then d.response else l.response end,
      failure_code = l.failure_code,
      own_faults = coalesce(l.own_faults, d.own_faults),
      updated_at = case when l.status is null then d.updated_at else record_results.at end
    from locked l where d.submission_id = l.submission and d.position = l.position
    returning l.*, d.email
  )
  select array_agg(u.ordinal),
    array_agg(row(u.submission, u.position, u.id, u.type, u.email, u.at, u.attempt, u.remote, u.response, u.enhanced, u.class,
      u.queued_at, u.began_at, u.conversation)::recipient_fact) filter (where u.id is not null)
  into counted, facts from updated u;
  if facts is not null then perform settle_submissions(facts, at); end if;
  return query select unnest(counted);
end $$;
