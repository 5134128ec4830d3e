-- Skips the newest `wanted` messages of the inbox with ids up to `last`. Returns the id of the next older one; '' if there
-- is none.
create or replace function older_id(inbox text, last text, wanted integer) returns text
language sql stable
as $$
  select coalesce((
    select n.id from unnest(array['inbound', 'outbound']) d cross join lateral (
      select m.id from message m where m.inbox_id = inbox and m.direction = d and m.id <= last
      order by m.id desc limit wanted + 1
    ) n
    order by n.id desc offset wanted limit 1
  ), '')
$$;
