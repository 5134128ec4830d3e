-- Folds up to `wanted` deltas into the roll-ups; returns how many. One node folds at a time. An hour or day keeps up to
-- `most` destinations. If there are more, only the largest stay, half of `most`.
create or replace function fold_metrics(wanted integer, most integer) returns integer
language plpgsql
as $$
declare
  folded integer;
  organizations uuid[];
  grains text[];
  begins timestamptz[];
begin
  if not pg_try_advisory_xact_lock(x'6d6574726963'::bigint) then return 0; end if; -- "metric"
  with taken as (
    delete from metric_delta where id in (select d.id from metric_delta d order by d.id limit wanted) returning *
  ), counted as materialized (
    select t.organization_id, p.kind, p.grain, p.at, p.name,
      coalesce(sum(p.amount) filter (where p.fact = 'accepted'), 0) as accepted,
      coalesce(sum(p.amount) filter (where p.fact = 'recipients'), 0) as recipients,
      coalesce(sum(p.amount) filter (where p.fact = 'delivered'), 0) as delivered,
      coalesce(sum(p.amount) filter (where p.fact = 'deferred'), 0) as deferred,
      coalesce(sum(p.amount) filter (where p.fact = 'bounced'), 0) as bounced,
      coalesce(sum(p.amount) filter (where p.fact = 'failed'), 0) as failed,
      coalesce(sum(p.amount) filter (where p.fact = 'cancelled'), 0) as cancelled,
      coalesce(sum(p.amount) filter (where p.fact = 'suppressed'), 0) as suppressed,
      coalesce(sum(p.amount) filter (where p.fact = 'complained'), 0) as complained,
      coalesce(sum(p.amount) filter (where p.fact = 'received'), 0) as received,
      case when p.kind = 'total' then histogram(array_agg(p.latency), array_agg(p.amount)) end as latencies,
      row_number() over (
        partition by t.organization_id, p.kind, p.grain, p.at order by sum(p.amount) desc, p.name) as ordinal
    from taken t cross join lateral spread_counts(t.at, t.counts) p
    group by t.organization_id, p.kind, p.grain, p.at, p.name
  ), kept as (
    insert into metric as m
    select organization_id, kind, grain, at, name, accepted, recipients, delivered, deferred, bounced, failed, cancelled,
      suppressed, complained, received, latencies
    from counted where kind <> 'destination' or ordinal <= most
    on conflict (organization_id, kind, grain, at, name) do update set
      accepted = m.accepted + excluded.accepted, recipients = m.recipients + excluded.recipients,
      delivered = m.delivered + excluded.delivered, deferred = m.deferred + excluded.deferred,
      bounced = m.bounced + excluded.bounced, failed = m.failed + excluded.failed,
      cancelled = m.cancelled + excluded.cancelled, suppressed = m.suppressed + excluded.suppressed,
      complained = m.complained + excluded.complained, received = m.received + excluded.received,
      latencies = add_histograms(m.latencies, excluded.latencies)
  )
  select (select count(*) from taken), array_agg(organization_id), array_agg(grain), array_agg(at)
  into folded, organizations, grains, begins
  from counted where kind = 'destination' and ordinal = 1;

  delete from metric where ctid = any(array(
    select r.ctid from (
      select d.ctid, count(*) over same as names, row_number() over (
        same order by d.recipients + d.delivered + d.bounced + d.deferred desc, d.name
        rows between unbounded preceding and unbounded following) as ordinal
      from unnest(organizations, grains, begins) b(organization_id, grain, at)
      join metric d on d.organization_id = b.organization_id and d.kind = 'destination' and d.grain = b.grain and d.at = b.at
      window same as (partition by d.organization_id, d.grain, d.at)
    ) r
    where r.names > most and r.ordinal > most / 2));
  return folded;
end $$;
