-- Returns the name of the limit that refuses an organization one more message to `recipients` recipients; null if none
-- does. If several refuse, returns the limit whose window ends last. `send_wait` returns the seconds until that window
-- ends.
create or replace function exceeded_limit(sender uuid, recipients integer, at timestamptz)
returns text
language plpgsql volatile -- a batch calls this after it has waited for the lock on usage
as $$
begin
  return (
    select l.name from usage u join organization o on o.id = u.organization_id
    cross join unnest('{messagesPerDay,recipientsPerDay,messagesPerMinute}'::text[]) with ordinality l(name, i)
    -- A missing limit refuses nothing.
    cross join lateral (
      select send_wait(jsonb_build_object(l.name, o.limits->l.name), u, 1, recipients, at) as seconds) w
    where u.organization_id = sender and w.seconds is not null
    order by w.seconds desc, l.i limit 1
  );
end $$;
