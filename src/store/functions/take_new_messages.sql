-- Reads up to `wanted` rows of the outbox, fewer once they have `most_items` items. Queues their new messages for indexing,
-- if their inboxes are searched. Returns how many rows it read. Changes nothing if another node did the same, or the outbox
-- was renumbered meanwhile.
create or replace function take_new_messages(wanted integer, most_items integer) returns bigint
language sql
as $$
  with seen as materialized (
    select o.*, c.xact as after_xact, c.seq as after_seq
    from outbox_cursor c cross join lateral (
      select r.*, sum(jsonb_array_length(r.items)) over (order by r.xact, r.seq) - jsonb_array_length(r.items) as before
      from (
        select * from outbox n
        where (n.xact, n.seq) > (c.xact, c.seq) and n.xact < pg_snapshot_xmin(pg_current_snapshot())
        order by n.xact, n.seq limit wanted
      ) r
    ) o
    where c.name = 'search' and o.before < most_items
  ), moved as (
    update outbox_cursor c set xact = l.xact, seq = l.seq
    from (select * from seen order by xact desc, seq desc limit 1) l
    where c.name = 'search' and c.xact = l.after_xact and c.seq = l.after_seq returning c.name
  ), added as (
    insert into search_waiting (organization_id, message_id, announced_at)
    select t.organization_id, t.message_id, t.created_at from moved cross join lateral (
      select s.xact, s.seq, s.organization_id, s.created_at, i.ordinal, case i.item->>'type'
        when 'message.received' then i.item->>'message'
        when 'message.sent' then (select n.message_id from submission n where n.id = (i.item->>'submission')::uuid)
      end as message_id
      from seen s cross join lateral jsonb_array_elements(s.items) with ordinality as i(item, ordinal)
      where exists (select from searched_inbox k where k.organization_id = s.organization_id)
    ) t
    where exists (
      select from (select * from message f where f.id = t.message_id limit 1) m cross join lateral (
        select from searched_inbox k where k.inbox_id = m.inbox_id and k.removed_to is null limit 1
      ) k
    )
    order by t.xact, t.seq, t.ordinal
  )
  select count(*) from seen where exists (select from moved)
$$;
