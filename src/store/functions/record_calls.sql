-- Records the results of calls. A result counts only under the epoch that still owns the endpoint; otherwise the new owner
-- calls again. Returns the endpoints that this disables: the receiver answered 410, or all calls failed for five days.
-- `results`: array of {delivery, webhook, epoch, status, next_attempt_at, at, request, response_status, response_body,
-- error, gone}. The status of a call to retry is pending.
create or replace function record_calls(results jsonb, at timestamptz) returns setof text
language plpgsql
as $$
begin
  perform 1 from webhook w
    where w.id in (select x->>'webhook' from jsonb_array_elements(results) x) order by w.id for no key update;
  return query
  with x as materialized (
    select * from jsonb_to_recordset(results) as x(
      delivery uuid, webhook text, epoch bigint, status text, next_attempt_at timestamptz, at timestamptz, request jsonb,
      response_status integer, response_body text, error text, gone boolean)
  ), counted as (
    update webhook_delivery d set status = x.status, attempts = d.attempts + 1,
      failures = case when x.status = 'succeeded' then 0 else d.failures + 1 end,
      last_attempt_at = x.at, next_attempt_at = x.next_attempt_at, request = x.request,
      response_status = x.response_status, response_body = x.response_body, error = x.error
    from x join webhook w on w.id = x.webhook and w.epoch = x.epoch and w.status <> 'deleted'
    -- Deliberately unlike the condition of the partial indexes, so that the planner can use only the primary key.
    where d.id = x.delivery and d.status not in ('succeeded', 'failed')
    returning x.webhook, x.status, x.at, x.gone
  ), outcomes as (
    select c.webhook, bool_or(c.status = 'succeeded') as works, bool_or(c.gone) as gone, min(c.at) as first_at
    from counted c group by c.webhook
  ), changed as (
    update webhook w set
      failing_since = case when o.works then null else coalesce(w.failing_since, o.first_at) end,
      status = case when w.status = 'active' and (o.gone or (not o.works and w.failing_since <= at - interval '5 days'))
        then 'disabled' else w.status end,
      updated_at = case when w.status = 'active' and (o.gone or (not o.works and w.failing_since <= at - interval '5 days'))
        then at else w.updated_at end
    from outcomes o
    where w.id = o.webhook and (o.gone or o.works = (w.failing_since is not null)
      or (not o.works and w.failing_since <= at - interval '5 days'))
    returning w.id, w.status
  )
  select c.id from changed c where c.status = 'disabled';
end $$;
