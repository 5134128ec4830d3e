-- Returns the hour in UTC, as in all roll-ups.
create or replace function hour_of(at timestamptz) returns timestamptz
language sql immutable
as $$
  select date_bin('1 hour', at, '2000-01-01 00:00:00Z')
$$;
