-- Returns how much more mail an organization may receive: messages and bytes on this UTC day, and bytes up to the limit
-- `storedBytes`. `kept_bytes` does not yet include `unfolded_bytes`, the bytes that were deleted and are not folded.
create or replace function received_room(org uuid, today date)
returns table (messages bigint, bytes bigint, kept_bytes bigint, unfolded_bytes bigint)
language sql stable
as $$
  select (used.limits->>'receivedMessagesPerDay')::bigint - case when used.day = today then used.messages else 0 end,
    (used.limits->>'receivedBytesPerDay')::bigint - case when used.day = today then used.bytes else 0 end,
    (used.limits->>'storedBytes')::bigint - used.stored_bytes,
    (select coalesce(sum(d.bytes), 0)::bigint from stored_delta d where d.organization_id = org)
  -- Because of this limit the caller's query sums up `unfolded_bytes` only if a condition reads it.
  from (
    select u.*, o.limits from received_usage u join organization o on o.id = u.organization_id
    where u.organization_id = org limit 1
  ) used
$$;
