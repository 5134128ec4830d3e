-- Removes up to `wanted` messages from the word index, of one inbox that was not searched since `until`. After the last
-- message, removes the inbox's own rows. The caller has claimed the index. Returns how many messages; null if there is no
-- such inbox.
create or replace function end_search(until timestamptz, wanted integer) returns integer
language plpgsql
as $$
declare
  k searched_inbox;
  ids text[];
begin
  select * into k from searched_inbox s where s.removed_to is not null order by s.inbox_id limit 1 for update skip locked;
  if not found then
    select * into k from searched_inbox s where s.used_at < until order by s.used_at limit 1 for update skip locked;
  end if;
  if not found then return null; end if;
  ids := array(
    select n.id from unnest(array['inbound', 'outbound']) d cross join lateral (
      select m.id from message m where m.inbox_id = k.inbox_id and m.direction = d and m.id > coalesce(k.removed_to, '')
      order by m.id limit wanted
    ) n
    order by n.id limit wanted
  );
  delete from message_search where message_id = any(ids);
  if cardinality(ids) < wanted then
    delete from searched_inbox s where s.inbox_id = k.inbox_id;
    delete from search_part p where p.inbox_id = k.inbox_id;
  else
    update searched_inbox s set removed_to = ids[wanted], before_id = null where s.inbox_id = k.inbox_id;
  end if;
  return cardinality(ids);
end $$;
