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
  cross join lateral (
    select case when u.day = today then u.messages else 0 end as messages, case when u.day = today then u.bytes else 0 end as bytes,
      u.stored_bytes, o.limits
    from received_usage u join organization o on o.id = u.organization_id where u.organization_id = x.org limit 1
  ) used
  where used.messages + x.messages > (used.limits->>'receivedMessagesPerDay')::bigint
    or used.bytes + x.bytes > (used.limits->>'receivedBytesPerDay')::bigint
    or used.stored_bytes + x.bytes > (used.limits->>'storedBytes')::bigint
      -- Read only if it can decide: this runs for each mail that is received.
      and used.stored_bytes + x.bytes > (used.limits->>'storedBytes')::bigint
        + (select coalesce(sum(d.bytes), 0) from stored_delta d where d.organization_id = x.org)
$$;
