-- Claims up to `wanted` due deliveries of a route. Organizations with due mail take part in round robin, so that a long
-- queue delays no other organization's single message. First attempts and retries have a round each; a quarter of `wanted`
-- is kept for retries. `untried` and `retried` are the cursors of the two rounds: each round continues after that
-- organization. A round ends at its organization `…_until`, where it began. A null cursor skips its round. The first row
-- has no submission: its `progress` says what was seen and where each round continues. The claim records the attempt. Under
-- an outdated epoch, or from a paused queue, nothing is claimed. The lock on the route keeps epoch and pause from changing
-- meanwhile. `suppressed` marks recipients that are suppressed by now. Measured, two claims at a time on a busy machine:
-- 1.5 ms, with 1,000 waiting organizations as with one. A query over all organizations took 39 ms.
create or replace function claim_due(route_key text, lease_epoch bigint, at timestamptz, wanted integer, passed_over uuid[],
  untried uuid, untried_until uuid, retried uuid, retried_until uuid)
returns table (submission_id uuid, "position" integer, organization_id uuid, email text, attempts integer,
  own_faults integer, queued_at timestamptz, expires_at timestamptz, suppressed boolean, progress jsonb)
language plpgsql
as $$
#variable_conflict use_column
declare
  untried_round record;
  retried_round record;
begin
  perform from route r where r.key = route_key and r.epoch = lease_epoch and not r.paused for share;
  if not found then return; end if;
  select * into untried_round
  from next_route_organizations(route_key, 'pending', at, untried_until, passed_over, greatest(wanted - wanted / 4, 1), untried);
  select * into retried_round
  from next_route_organizations(route_key, 'deferred', at, retried_until, passed_over,
    greatest(wanted - cardinality(untried_round.organizations), 1), retried);
  progress := jsonb_build_object('untried', untried_round, 'retried', retried_round);
  return next;
  if wanted = 0 or untried_round.organizations || retried_round.organizations = '{}' then return; end if;
  return query
  with chosen as materialized (
    select w.submission_id, w.position from (
      select id, 'pending' as status from unnest(untried_round.organizations) id
      union all
      select id, 'deferred' from unnest(retried_round.organizations) id
    ) o cross join lateral (
      -- With `range`, the default, PostgreSQL 15 would read all rows due at the same moment before it numbers the first.
      select d.submission_id, d.position, row_number() over (order by d.due_at rows unbounded preceding) as ordinal
      from delivery d
      where d.route = route_key and d.status = o.status and d.organization_id = o.id
        and d.claim_epoch is null and d.status in ('pending', 'deferred') and d.due_at <= at and d.expires_at > at
      order by d.due_at limit wanted
    ) w
    order by w.ordinal, random() limit wanted
  ), locked as materialized (
    select d.ctid from chosen c join delivery d on d.submission_id = c.submission_id and d.position = c.position
    -- Deliberately unlike the condition of the partial indexes, so that the planner can use only the primary key.
    where d.claim_epoch is null and d.status not in ('delivered', 'bounced', 'failed', 'suppressed')
      and (select b.status from inbox b where b.id = d.inbox_id) is distinct from 'deleted'
    for update of d skip locked
  ), claimed as (
    update delivery d set claim_epoch = lease_epoch, attempts = d.attempts + 1, queued_at = coalesce(d.queued_at, at),
      updated_at = at
    from locked l where d.ctid = l.ctid
    returning d.*
  )
  select c.submission_id, c.position, c.organization_id, c.email, c.attempts, c.own_faults, c.queued_at, c.expires_at,
    (select true from suppression p
      where p.organization_id = c.organization_id and p.address_key = c.address_key limit 1) is not null,
    null::jsonb
  from claimed c;
end $$;
