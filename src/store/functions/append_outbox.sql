-- Appends events to the outbox, in order. `facts`: array of {org, id, type, …}.
create or replace function append_outbox(facts jsonb, at timestamptz) returns void
language sql
as $$
  insert into outbox (organization_id, items, created_at)
  select (f->>'org')::uuid, jsonb_agg(f - 'org' order by ordinal), at
  from jsonb_array_elements(facts) with ordinality as x(f, ordinal)
  group by f->>'org'
$$;
