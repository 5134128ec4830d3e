-- Counts messages and recipients as sent, for each organization whose limits allow all of them together. Returns these
-- organizations. `senders` has each organization once. The caller holds the locks on their usage.
create or replace function count_sends(senders uuid[], messages integer[], recipients integer[], at timestamptz)
returns setof uuid
language plpgsql
as $$
begin
  return query
  update usage u set
    minute_started_at = case when is_running(u.minute_started_at, at) then u.minute_started_at else at end,
    minute_messages = case when is_running(u.minute_started_at, at) then u.minute_messages else 0 end + n.messages,
    day = n.today,
    day_messages = case when u.day = n.today then u.day_messages else 0 end + n.messages,
    day_recipients = case when u.day = n.today then u.day_recipients else 0 end + n.recipients
  from (
    select x.*, o.limits, (at at time zone 'UTC')::date as today
    from unnest(senders, messages, recipients) as x(sender, messages, recipients)
    cross join lateral (select * from organization f where f.id = x.sender limit 1) o
  ) n
  where u.organization_id = n.sender and send_wait(n.limits, u, n.messages, n.recipients, at) is null
  returning u.organization_id;
end $$;
