-- Counts messages and their recipients as sent by the organization, where its limits let them pass: null; or else the
-- seconds to wait, and nothing is counted. The caller holds the lock on its usage.
create or replace function count_sends(org uuid, messages integer, recipients integer, at timestamptz) returns integer
language plpgsql
as $$
declare
  today date := (at at time zone 'UTC')::date;
begin
  update usage u set
    minute_started_at = case when is_running(u.minute_started_at, at) then u.minute_started_at else at end,
    minute_messages = case when is_running(u.minute_started_at, at) then u.minute_messages else 0 end + messages,
    day = today,
    day_messages = case when u.day = today then u.day_messages else 0 end + messages,
    day_recipients = case when u.day = today then u.day_recipients else 0 end + recipients
  from organization o
  where u.organization_id = org and o.id = org and send_wait(o.limits, u, messages, recipients, at) is null;
  if found then return null; end if;
  return (select send_wait(o.limits, u, messages, recipients, at) from usage u join organization o on o.id = org
    where u.organization_id = org);
end $$;
