-- Stores the words of messages. Skips a deleted message, and waits for a message that is being deleted.
create or replace function index_messages(ids text[], vectors text[]) returns void
language sql
as $$
  insert into message_search (message_id, organization_id, inbox_id, words)
  select m.id, m.organization_id, m.inbox_id, x.vector::tsvector
  from (select * from unnest(ids, vectors) as x(id, vector) order by x.id) x
  cross join lateral (select * from message m where m.id = x.id limit 1 for key share) m
  on conflict (message_id) do nothing
$$;
