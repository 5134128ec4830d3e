-- Returns each count of one delta once for each roll-up that it belongs to.
create or replace function spread_counts(moment timestamptz, counts metric_count[])
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
