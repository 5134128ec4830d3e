-- Returns the seconds until an organization's limits allow `messages` and `recipients` more; null if they allow them now. If
-- both windows are used up, the one that ends later counts.
create or replace function send_wait(limits jsonb, used usage, messages integer, recipients integer, at timestamptz)
returns integer
language plpgsql stable
as $$
declare
  today date := (at at time zone 'UTC')::date;
  waits integer;
begin
  if not is_running(used.minute_started_at, at) then
    used.minute_started_at := at;
    used.minute_messages := 0;
  end if;
  if used.day is distinct from today then
    used.day_messages := 0;
    used.day_recipients := 0;
  end if;
  if used.day_messages + messages > (limits->>'messagesPerDay')::integer
    or used.day_recipients + recipients > (limits->>'recipientsPerDay')::integer then
    waits := greatest(1, ceil(extract(epoch from (today + 1)::timestamp at time zone 'UTC' - at)));
  end if;
  if used.minute_messages + messages > (limits->>'messagesPerMinute')::integer then
    -- `at` may be before the window's start, if the caller waited for the lock.
    waits := greatest(waits, 1, least(60, ceil(extract(epoch from used.minute_started_at + interval '60 s' - at))));
  end if;
  return waits;
end $$;
