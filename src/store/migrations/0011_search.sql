-- Full-text search over messages: one row a message, filled by a job that reads the outbox, so that accepting and filing
-- write nothing for it. What the outbox tells of waits here for its organization's turn.

-- A stretch of an inbox's messages by their ids, of about 4,096. Every word of its messages is stored behind its number, so
-- that a search looks through its own inbox alone, from the newest stretch on, and ends once a page is full.
create table search_part (
  number bigint generated always as identity primary key,
  organization_id uuid not null,
  inbox_id text not null,
  -- It holds the messages behind this id, up to the next part's.
  after_id text not null,
  -- The message number that made it begin.
  from_seq bigint not null
);
create index search_part_inbox on search_part (inbox_id, after_id, number);

create table message_search (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  inbox_id text not null,
  words tsvector not null
);
alter table message_search alter column words set statistics 0;
-- The job itself empties the pending list, between its transactions: readers of the outbox wait for each of them.
create index message_search_words on message_search using gin (words) with (gin_pending_list_limit = 65536);

-- A message that waits to be indexed, in the order of the outbox: organizations take turns, whatever one of them brings.
-- What is gone is dropped in its turn.
create table search_waiting (
  organization_id uuid not null,
  place bigint generated always as identity,
  message_id text not null,
  announced_at timestamptz not null,
  primary key (organization_id, place)
);

-- Up to here the outbox has been looked through for messages.
insert into outbox_cursor values ('search', '0', 0, 0);

-- The messages of which the next `wanted` rows of the outbox tell for the first time, or of fewer where these have many
-- items, wait from here on. Answers how many rows that were. Where another node does the same, or the outbox was numbered
-- anew meanwhile, nothing moves.
create function take_new_messages(wanted integer, most_items integer) returns bigint
language sql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
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
      select s.xact, s.seq, s.organization_id, s.created_at, i.place, case i.item->>'type'
        when 'message.received' then i.item->>'message'
        when 'message.sent' then (select n.message_id from submission n where n.id = (i.item->>'submission')::uuid)
      end as message_id
      from seen s cross join lateral jsonb_array_elements(s.items) with ordinality as i(item, place)
    ) t
    where t.message_id is not null order by t.xact, t.seq, t.place
  )
  select count(*) from seen where exists (select from moved)
$$;

-- Up to `wanted` of the messages that wait, of up to 32 organizations from behind the one that had its turn last, once
-- round: the first of each, then the second of each, and so on. So many probes are made, however many organizations wait.
create function find_search_turns(behind uuid, wanted integer)
returns table (organization_id uuid, place bigint, message_id text)
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
set enable_sort = off
as $$
  with recursive turn as (
    select 0 as number, coalesce(behind, '00000000-0000-0000-0000-000000000000') as organization_id,
      behind is null as is_round
    union all
    select t.number + 1, n.organization_id, n.is_round
    from turn t cross join lateral (
      select * from (
        (select w.organization_id, t.is_round from search_waiting w
        where w.organization_id > t.organization_id order by w.organization_id limit 1)
        union all
        (select w.organization_id, true from search_waiting w
        where not t.is_round and w.organization_id <= behind order by w.organization_id limit 1)
      ) x order by x.is_round limit 1
    ) n
    where t.number < 32 and (behind is null or not n.is_round or n.organization_id <= behind)
  )
  select t.organization_id, w.place, w.message_id
  from turn t cross join lateral (
    select x.place, x.message_id, row_number() over (order by x.place) as rank from (
      select * from search_waiting f where f.organization_id = t.organization_id order by f.place limit wanted
    ) x
  ) w
  where t.number > 0 order by w.rank, t.number limit wanted
$$;

-- Begins a new part in each inbox where one of these messages needs it; answers in how many. All that has been indexed of
-- an inbox has a smaller number than the new part begins with, and so an id that is not behind its `after_id`.
create function add_search_parts(ids text[]) returns integer
language plpgsql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
declare
  added integer;
begin
  insert into search_part (organization_id, inbox_id, after_id, from_seq)
  select n.organization_id, n.inbox_id,
    coalesce(greatest(n.after_id, (
      select max(e.id) from (
        select m.id from message m where m.inbox_id = n.inbox_id and m.seq >= n.from_seq and m.seq < n.next_seq
        order by m.seq limit 1000000
      ) e where n.from_seq is not null
    )), ''),
    case when n.from_seq is null then 0 else n.next_seq end
  from (
    select m.organization_id, m.inbox_id, l.after_id, l.from_seq, max(m.seq) / 4096 * 4096 as next_seq
    from unnest(ids) as i(id)
    cross join lateral (select * from message n where n.id = i.id limit 1) m
    join inbox b on b.id = m.inbox_id and b.status = 'active'
    left join lateral (
      select p.after_id, p.from_seq from search_part p where p.inbox_id = m.inbox_id
      order by p.after_id desc, p.number desc limit 1
    ) l on true
    group by m.organization_id, m.inbox_id, l.after_id, l.from_seq
  ) n
  where n.from_seq is null or n.next_seq > n.from_seq;
  get diagnostics added = row_count;
  return added;
end $$;

-- The first of these messages with texts of about `most_bytes` together, each text cut to `longest` characters, in their order.
-- Of one that is gone, or indexed, all but `id` is null.
create function read_unindexed(ids text[], most_bytes bigint, longest integer)
returns table (id text, prefix text, subject text, body text, sender jsonb, recipients jsonb, attachments jsonb)
language sql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
  select n.id, to_hex(r.number) || '_', r.subject, left(r.text, longest), r.sender, r.recipients, r.attachments
  from (
    select i.id, i.place, k.size is not null as is_there,
      coalesce(sum(k.size) over (order by i.place rows between unbounded preceding and 1 preceding), 0) as before
    -- The limits keep the plan from looking through whole indexes, which were empty when it was made.
    from unnest(ids) with ordinality as i(id, place)
    left join lateral (
      select octet_length(m.text) as size from (select * from message f where f.id = i.id limit 1) m
      join inbox b on b.id = m.inbox_id and b.status = 'active'
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
  where n.before < most_bytes order by n.place
$$;

-- Stores the words of messages; of one that is gone nothing is stored, and one that is being deleted is waited for.
create function index_messages(ids text[], vectors text[]) returns void
language sql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
  insert into message_search (message_id, organization_id, inbox_id, words)
  select m.id, m.organization_id, m.inbox_id, x.vector::tsvector
  from (select * from unnest(ids, vectors) as x(id, vector) order by x.id) x
  cross join lateral (select * from message m where m.id = x.id limit 1 for key share) m
  on conflict (message_id) do nothing
$$;

-- Messages wait no longer.
create function drop_waiting(organizations uuid[], places bigint[]) returns void
language sql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
  delete from search_waiting where ctid = any(array(
    select w.ctid from unnest(organizations, places) as x(organization_id, place)
    cross join lateral (
      select f.ctid from search_waiting f where f.organization_id = x.organization_id and f.place = x.place limit 1
    ) w
  ))
$$;

-- The ids of an inbox's messages that `query` finds, newest first, from `since` on and before `until`. `query` is a tsquery
-- with a $ before each word. The newest part is asked alone, older ones together, twice as many each time: common words end
-- early, and rare ones cost few scans.
create function search_messages(
  inbox text, query text, only_direction text, only_sender text, since text, until text, wanted integer)
returns setof text
language plpgsql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
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
