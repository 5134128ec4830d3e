-- Returns a UUID version 7 (RFC 9562 5.7).
create or replace function uuid_v7(at timestamptz) returns uuid
language sql volatile
as $$
  select delivery_id((extract(epoch from at) * 1000)::bigint, (random() * 4095)::integer)
$$;
