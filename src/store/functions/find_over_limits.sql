-- The places of mails that would go past an organization's bounds of a UTC day, or of what it keeps. What is refused of a batch
-- counts in it.
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
    -- Read only if it can decide: this runs for each mail that is received.
    and x.bytes > room.kept_bytes + room.unfolded_bytes
$$;
