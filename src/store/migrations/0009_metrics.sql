-- Metrics: what happened is counted in the commit in which it happens, by appending: no row is hot. A job folds what was
-- appended into roll-ups; reads add both, so they are exact at any moment.

-- One kind of fact, so many times. Latency: the bucket of the time from accepted to delivered.
create type metric_count as (fact text, sender text, destination text, latency smallint, amount integer);

-- What one commit adds for one organization within one hour; `at` is the latest of its facts.
create table metric_delta (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  at timestamptz not null,
  counts metric_count[] not null
);
create index metric_delta_organization on metric_delta (organization_id);

-- Roll-ups: of everything ('total', name ''), of a domain that sends or receives mail for the organization ('own'), of a
-- domain that mail goes to ('destination'). `at` begins the second, hour or day (UTC).
create table metric (
  organization_id uuid not null,
  kind text not null check (kind in ('total', 'own', 'destination')),
  grain text not null check (grain in ('second', 'hour', 'day')),
  at timestamptz not null,
  name text not null,
  accepted integer not null,
  recipients integer not null,
  delivered integer not null,
  deferred integer not null,
  bounced integer not null,
  failed integer not null,
  cancelled integer not null,
  suppressed integer not null,
  complained integer not null,
  received integer not null,
  -- Of the total: how many deliveries fall into each latency bucket; null without any.
  latencies integer[],
  primary key (organization_id, kind, grain, at, name)
) with (fillfactor = 50);
alter table metric alter column latencies set statistics 0;
create index metric_age on metric (grain, at);

-- 112 buckets, four to the doubling: bucket b reaches from 2^(b/4) ms to 2^((b+1)/4) ms, the last one from 73 hours on.
create function latency_bucket(took interval) returns smallint
language sql immutable
as $$
  select least(111, floor(4 * ln(greatest(1, date_part('epoch', took) * 1000)) / ln(2::float8)))::smallint
$$;

create function histogram(buckets smallint[], amounts integer[]) returns integer[]
language plpgsql immutable
as $$
declare
  counts integer[];
begin
  for i in 1 .. cardinality(buckets) loop
    continue when buckets[i] is null;
    counts := coalesce(counts, array_fill(0, array[112]));
    counts[buckets[i] + 1] := counts[buckets[i] + 1] + amounts[i];
  end loop;
  return counts;
end $$;

create function add_histograms(one integer[], other integer[]) returns integer[]
language sql immutable
as $$
  select case when one is null then other when other is null then one
    else array(select n.one + n.other from unnest(one, other) as n(one, other)) end
$$;

-- In UTC, as all roll-ups are.
create function hour_of(at timestamptz) returns timestamptz
language sql immutable
as $$
  select date_bin('1 hour', at, '2000-01-01 00:00:00Z')
$$;

create function domain_of(email text) returns text
language sql immutable
as $$
  select split_part(email, '@', -1)
$$;

-- The roll-ups that the counts of one delta belong to.
create function place_counts(moment timestamptz, counts metric_count[])
returns table (kind text, grain text, at timestamptz, name text, fact text, latency smallint, amount integer)
language sql stable
as $$
  select p.kind, p.grain, date_trunc(p.grain, moment, 'UTC'), p.name, c.fact, c.latency, c.amount
  from unnest(counts) c
  cross join lateral (values
    ('total', 'hour', ''), ('total', 'day', ''),
    ('own', 'hour', c.sender), ('own', 'second', case c.fact when 'accepted' then c.sender end),
    ('destination', 'hour', c.destination), ('destination', 'day', c.destination)
  ) p(kind, grain, name)
  where p.name is not null
$$;

-- Folds up to `wanted` deltas into the roll-ups; answers how many. One node folds at a time. An hour or day keeps at most
-- `most` destinations: once there are more, half of `most` stay, the largest.
create function fold_metrics(wanted integer, most integer) returns integer
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
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
        partition by t.organization_id, p.kind, p.grain, p.at order by sum(p.amount) desc, p.name) as place
    from taken t cross join lateral place_counts(t.at, t.counts) p
    group by t.organization_id, p.kind, p.grain, p.at, p.name
  ), kept as (
    insert into metric as m
    select organization_id, kind, grain, at, name, accepted, recipients, delivered, deferred, bounced, failed, cancelled,
      suppressed, complained, received, latencies
    from counted where kind <> 'destination' or place <= most
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
  from counted where kind = 'destination' and place = 1;

  delete from metric where ctid = any(array(
    select r.ctid from (
      select d.ctid, count(*) over same as names, row_number() over (
        same order by d.recipients + d.delivered + d.bounced + d.deferred desc, d.name
        rows between unbounded preceding and unbounded following) as place
      from unnest(organizations, grains, begins) b(organization_id, grain, at)
      join metric d on d.organization_id = b.organization_id and d.kind = 'destination' and d.grain = b.grain and d.at = b.at
      window same as (partition by d.organization_id, d.grain, d.at)
    ) r
    where r.names > most and r.place > most / 2));
  return folded;
end $$;
