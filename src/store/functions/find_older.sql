-- Returns up to `wanted` messages of an inbox's oldest part that may not be indexed yet, newest first. They existed at the
-- inbox's first search, or were received long before they were filed. Returns none once that part is done.
create or replace function find_older(inbox text, wanted integer) returns table (message_id text)
language sql stable
as $$
  select n.id
  from (select * from searched_inbox s where s.inbox_id = inbox and s.removed_to is null limit 1) k
  cross join lateral (
    select p.after_id from search_part p where p.inbox_id = k.inbox_id order by p.after_id, p.number limit 1
  ) p
  cross join unnest(array['inbound', 'outbound']) d
  cross join lateral (
    select m.id from message m where m.inbox_id = k.inbox_id and m.direction = d and m.id < k.before_id
      and m.id > p.after_id order by m.id desc limit wanted
  ) n
  order by n.id desc limit wanted
$$;
