-- The seconds until an organization's limits let it send so many messages to so many recipients more; null where they do
-- already. Where both windows are used up it is the one that ends later. Stable, so that it is inlined.
create or replace function send_wait(limits jsonb, used usage, messages integer, recipients integer, at timestamptz)
returns integer
language sql stable
as $$
  select greatest(
    case when case when is_running(used.minute_started_at, at) then used.minute_messages else 0 end + messages
        > (limits->>'messagesPerMinute')::integer then
      -- Who waited for the lock meanwhile has an earlier time than the window's beginning.
      least(60, greatest(1, ceil(extract(epoch from
        case when is_running(used.minute_started_at, at) then used.minute_started_at else at end + interval '60 s' - at)))) end,
    case when case when used.day = (at at time zone 'UTC')::date then used.day_messages else 0 end + messages
        > (limits->>'messagesPerDay')::integer
      or case when used.day = (at at time zone 'UTC')::date then used.day_recipients else 0 end + recipients
        > (limits->>'recipientsPerDay')::integer then
      greatest(1, ceil(extract(epoch from
        ((at at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC' - at))) end
  )::integer
$$;
