-- Returns a UUID version 7, greater than any of an earlier millisecond, or of this one and a smaller ordinal.
create or replace function delivery_id(ms bigint, ordinal integer) returns uuid
language sql volatile
as $$
  select encode(overlay(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(ms + ordinal / 4096) from 3) from 1)
    placing int2send((28672 + ordinal % 4096)::smallint) from 7), 'hex')::uuid
$$;
