-- Begins new parts of the word index for these messages; returns how many. A part holds an inbox's messages with ids above
-- its `after_id`, up to the next part's. An inbox gets a new part once a message's number reaches the next multiple of
-- 4,096. No message indexed so far may have an id above the new part's `after_id`. Such a message existed at the inbox's
-- first search, or has a number below `next_seq`. So `after_id` is the greatest id of both kinds.
create or replace function add_search_parts(ids text[]) returns integer
language plpgsql
as $$
declare
  added integer;
begin
  insert into search_part (organization_id, inbox_id, after_id, from_seq)
  select n.organization_id, n.inbox_id,
    greatest(n.after_id, n.newest_id, (
      select max(e.id) from (
        select m.id from message m
        where m.inbox_id = n.inbox_id and m.direction in ('inbound', 'outbound') and m.seq < n.next_seq
          and m.seq >= greatest(n.from_seq, n.until_seq + 1)
        order by m.seq limit 1000000
      ) e
    )),
    n.next_seq
  from (
    select m.organization_id, m.inbox_id, l.after_id, l.from_seq, k.until_seq, k.newest_id,
      max(m.seq) / 4096 * 4096 as next_seq
    from unnest(ids) as i(id)
    cross join lateral (select * from message n where n.id = i.id limit 1) m
    join inbox b on b.id = m.inbox_id and b.status = 'active'
    cross join lateral (
      select s.until_seq, s.newest_id from searched_inbox s where s.inbox_id = m.inbox_id and s.removed_to is null limit 1
    ) k
    cross join lateral (
      select p.after_id, p.from_seq from search_part p where p.inbox_id = m.inbox_id
      order by p.after_id desc, p.number desc limit 1
    ) l
    group by m.organization_id, m.inbox_id, l.after_id, l.from_seq, k.until_seq, k.newest_id
  ) n
  where n.next_seq > n.from_seq;
  get diagnostics added = row_count;
  return added;
end $$;
