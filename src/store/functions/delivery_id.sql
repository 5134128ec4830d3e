-- Returns a UUID version 7. It sorts after all of earlier milliseconds, and after all of this millisecond with smaller
-- ordinals.
create or replace function delivery_id(ms bigint, ordinal integer) returns uuid
language sql volatile
as $$
  select encode(overlay(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send(ms + ordinal / 4096) from 3) from 1)
    placing int2send((28672 + ordinal % 4096)::smallint) from 7), 'hex')::uuid
$$;
