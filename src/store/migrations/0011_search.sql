-- Full-text search over messages: one row a message, filled by a job that reads the outbox, so that accepting and filing
-- write nothing for it.

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

-- How far the job has come.
insert into outbox_cursor values ('search', '0', 0, 0);

-- The next `wanted` rows of the outbox, or fewer where these have many items; which messages each tells of for the first
-- time, and the place that they follow.
create function find_new_messages(wanted integer)
returns table (xact text, seq bigint, messages text[], after_xact text, after_seq bigint)
language sql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
  select o.xact::text, o.seq, array(
    select t.id from (
      select case i.item->>'type'
        when 'message.received' then i.item->>'message'
        when 'message.sent' then (select s.message_id from submission s where s.id = (i.item->>'submission')::uuid)
      end as id
      from jsonb_array_elements(o.items) as i(item)
    ) t where t.id is not null
  ), c.xact::text, c.seq
  from outbox_cursor c cross join lateral (
    select r.*, sum(jsonb_array_length(r.items)) over (order by r.xact, r.seq) - jsonb_array_length(r.items) as before
    from (
      select * from outbox n
      where (n.xact, n.seq) > (c.xact, c.seq) and n.xact < pg_snapshot_xmin(pg_current_snapshot())
      order by n.xact, n.seq limit wanted
    ) r
  ) o
  where c.name = 'search' and o.before < 500 order by o.xact, o.seq
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

-- Those of the messages that are to be indexed and are not yet: up to `wanted`, and with texts of about `most_bytes`
-- together, of each no more than `longest` characters; and how many there are in all.
create function read_unindexed(ids text[], wanted integer, most_bytes bigint, longest integer)
returns table (id text, prefix text, subject text, body text, sender jsonb, recipients jsonb, attachments jsonb,
  waiting bigint)
language sql stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
  select m.id, to_hex(p.number) || '_', m.subject, left(m.text, longest), m.sender, m.recipients, m.attachments, n.waiting
  from (
    select m.id, sum(octet_length(m.text)) over (order by m.id) - octet_length(m.text) as before,
      count(*) over () as waiting
    -- The limits keep the plan from looking through whole indexes, which were empty when it was made.
    from unnest(ids) as i(id)
    cross join lateral (select * from message n where n.id = i.id limit 1) m
    join inbox b on b.id = m.inbox_id and b.status = 'active'
    left join lateral (select true as is_indexed from message_search s where s.message_id = m.id limit 1) k on true
    where k.is_indexed is null
    order by m.id limit wanted
  ) n
  join message m on m.id = n.id
  cross join lateral (
    select p.number from search_part p where p.inbox_id = m.inbox_id and p.after_id < m.id
    order by p.after_id desc, p.number desc limit 1
  ) p
  where n.before < most_bytes order by m.id
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
