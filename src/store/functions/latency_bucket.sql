-- Returns one of 112 buckets, four per doubling: bucket b is from 2^(b/4) ms to 2^((b+1)/4) ms, the last from 73 hours on.
create or replace function latency_bucket(took interval) returns smallint
language sql immutable
as $$
  select least(111, floor(4 * ln(greatest(1, date_part('epoch', took) * 1000)) / ln(2::float8)))::smallint
$$;
