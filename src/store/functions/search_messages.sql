-- Returns the ids of an inbox's messages that match `query`, newest first, from `since` on and before `until`. `query` is a
-- tsquery with a $ before each word. Searches the newest part alone, then older parts together, twice as many each time. So
-- a search for common words ends early, and a search for rare words needs few scans. The word index has no direction and no
-- sender: up to `most` hits are compared with them. If there are more hits, the last row has the id of the last hit
-- compared, with `is_found` false.
create or replace function search_messages(
  inbox text, query text, only_direction text, only_sender text, since text, until text, wanted integer, most integer)
returns table (message_id text, is_found boolean)
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
  is_filtered boolean := only_direction is not null or only_sender is not null;
  hits text[];
  compared text;
begin
  select array_agg(p.number order by p.after_id desc, p.number desc), array_agg(p.after_id order by p.after_id desc, p.number desc)
    into numbers, starts from search_part p where p.inbox_id = inbox and p.after_id < until;
  while first <= cardinality(numbers) loop
    last := least(first + at_once - 1, cardinality(numbers));
    select string_agg('(' || replace(query, '$', to_hex(n) || '_') || ')', ' | ')::tsquery into asked
      from unnest(numbers[first:last]) n;
    -- Materialized, so that the planner does not scan messages in the order of their ids.
    with hit as materialized (
      select s.message_id as id, s.inbox_id from message_search s where s.words @@ asked
    )
    select coalesce(array_agg(h.id order by h.id desc), '{}') into hits from (
      select h.id from hit h
      where h.inbox_id = inbox and h.id >= since and h.id < until
      order by h.id desc limit case when is_filtered then most + 1 else wanted end
    ) h;
    return query
    select h.id, true from unnest(case when is_filtered then hits[:most] else hits end) h (id)
    where not is_filtered or exists (
      select from message m where m.id = h.id and (only_direction is null or m.direction = only_direction)
        and (only_sender is null or lower(m.sender->>'email') = only_sender))
    order by h.id desc limit wanted;
    get diagnostics more = row_count;
    wanted := wanted - more;
    exit when wanted <= 0;
    if is_filtered then
      compared := coalesce(hits[least(most, cardinality(hits))], compared);
      if cardinality(hits) > most then
        return query select compared, false;
        exit;
      end if;
      most := most - cardinality(hits);
    end if;
    exit when starts[last] < since;
    first := last + 1;
    -- A tsquery holds up to 1 MiB.
    at_once := greatest(1, least(at_once * 2, 64, 100000 / length(query)));
  end loop;
end $$;
