-- The ids of an inbox's messages that `query` finds, newest first, from `since` on and before `until`. `query` is a tsquery
-- with a $ before each word. The newest part is asked alone, older ones together, twice as many each time: common words end
-- early, and rare ones cost few scans.
create or replace function search_messages(
  inbox text, query text, only_direction text, only_sender text, since text, until text, wanted integer)
returns setof text
language plpgsql stable
as $$
declare
  numbers bigint[];
  starts text[];
  first integer := 1;
  last integer;
  at_once integer := 1;
  asked tsquery;
  more integer;
begin
  select array_agg(p.number order by p.after_id desc, p.number desc), array_agg(p.after_id order by p.after_id desc, p.number desc)
    into numbers, starts from search_part p where p.inbox_id = inbox and p.after_id < until;
  while first <= cardinality(numbers) loop
    last := least(first + at_once - 1, cardinality(numbers));
    select string_agg('(' || replace(query, '$', to_hex(n) || '_') || ')', ' | ')::tsquery into asked
      from unnest(numbers[first:last]) n;
    return query
    -- Materialized, so that no plan looks through messages in the order of their ids instead.
    with hit as materialized (
      select s.message_id, s.inbox_id from message_search s where s.words @@ asked
    )
    select h.message_id from hit h
    where h.inbox_id = inbox and h.message_id >= since and h.message_id < until
      and ((only_direction is null and only_sender is null) or exists (
        select from message m where m.id = h.message_id and (only_direction is null or m.direction = only_direction)
          and (only_sender is null or lower(m.sender->>'email') = only_sender)))
    order by h.message_id desc limit wanted;
    get diagnostics more = row_count;
    wanted := wanted - more;
    exit when wanted <= 0 or starts[last] < since;
    first := last + 1;
    -- A tsquery holds 1 MiB.
    at_once := greatest(1, least(at_once * 2, 64, 100000 / length(query)));
  end loop;
end $$;
