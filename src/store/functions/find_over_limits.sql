-- Returns the ordinals of mails that would exceed an organization's bounds for a UTC day, or for its stored bytes. Refused
-- mails of the batch count too.
create or replace function find_over_limits(inboxes jsonb, today date) returns setof integer
language sql stable
as $$
  select x.i from (
    select x.i, x.org, sum(count(*)) over w as messages, sum(sum(x.size)) over w as bytes
    from jsonb_to_recordset(inboxes) as x(i integer, org uuid, size integer)
    group by x.i, x.org window w as (partition by x.org order by x.i)
  ) x
  cross join lateral received_room(x.org, today) room
  where x.messages > room.messages or x.bytes > room.bytes or x.bytes > room.kept_bytes
    -- This runs for each received mail, so the deltas are read only if they can change the result.
    and x.bytes > room.kept_bytes + room.unfolded_bytes
$$;
