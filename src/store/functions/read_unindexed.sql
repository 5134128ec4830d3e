-- Returns the first of these messages, in their order, with about `most_bytes` of text together, each cut to `longest`
-- characters. Only `id` is set if a message is gone, indexed or older than all parts, or its inbox is not searched.
create or replace function read_unindexed(ids text[], most_bytes bigint, longest integer)
returns table (id text, prefix text, subject text, body text, sender jsonb, recipients jsonb, attachments jsonb)
language sql stable
as $$
  select n.id, to_hex(r.number) || '_', r.subject, left(r.text, longest), r.sender, r.recipients, r.attachments
  from (
    select i.id, i.ordinal, k.size is not null as is_there,
      coalesce(sum(k.size) over (order by i.ordinal rows between unbounded preceding and 1 preceding), 0) as before
    -- The limits prevent scans of whole indexes, which the planner chooses if they were empty when it planned.
    from unnest(ids) with ordinality as i(id, ordinal)
    left join lateral (
      select least(octet_length(m.text), 4 * longest) as size from (select * from message f where f.id = i.id limit 1) m
      join inbox b on b.id = m.inbox_id and b.status = 'active'
      cross join lateral (
        select from searched_inbox s where s.inbox_id = m.inbox_id and s.removed_to is null limit 1
      ) s
      left join lateral (select true as is_indexed from message_search s where s.message_id = m.id limit 1) x on true
      where x.is_indexed is null
    ) k on true
  ) n
  left join lateral (
    select m.*, p.number from (select * from message f where f.id = n.id and n.is_there limit 1) m
    cross join lateral (
      select p.number from search_part p where p.inbox_id = m.inbox_id and p.after_id < m.id
      order by p.after_id desc, p.number desc limit 1
    ) p
  ) r on true
  where n.before < most_bytes order by n.ordinal
$$;
