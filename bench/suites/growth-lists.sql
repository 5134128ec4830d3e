-- Fills the other lists of the organization, and the word index of the inbox bench.here, in proportion to bench.messages.
-- Runs once, after all messages are there and the templates are indexed.
set session_replication_role = replica;

-- Short lists have at least 100 entries, more than a page, so that the answers of all stores have the same size.
create temporary table extent as
select h.inbox_id, h.organization_id, m.messages, greatest(m.messages / 1000, 100) as entries
from home h cross join (select current_setting('bench.messages')::integer) m(messages) where h.number = 0;

-- Times are within the thirty days of the messages.
create or replace function pg_temp.time_of(i integer, total integer) returns timestamptz
language sql
as $$
  select now() - interval '30 days' + i * (interval '29 days' / total)
$$;
create or replace function pg_temp.uuid_of(at timestamptz, salt text) returns uuid
language sql
as $$
  select pg_temp.uuid_at(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), salt)
$$;

insert into inbox
select r.* from extent x cross join lateral generate_series(1, x.entries) i join home own on own.number = 0
cross join lateral jsonb_populate_record(own.inbox, jsonb_build_object('id', 'inb_e' || lpad(i::text, 23, '0'),
  'local_part', 'empty' || i, 'idempotency_key', null, 'message_seq', 0)) r;

insert into suppression (organization_id, address_key, id, email, reason, created_at)
select x.organization_id, 's' || i || '@far.test', pg_temp.uuid_of(t.at, 'suppression' || i), 's' || i || '@far.test',
  'hard_bounce', t.at
from extent x cross join lateral generate_series(1, x.messages / 100) i
cross join lateral pg_temp.time_of(i, x.messages / 100) t(at);

insert into complaint (organization_id, id, submission_id, email, address_key, feedback_type, arrived_at, created_at)
select x.organization_id, pg_temp.uuid_of(t.at, 'complaint' || i), pg_temp.uuid_of(t.at, 'none' || i), 'c@far.test', 'c@far.test',
  'abuse', t.at, t.at
from extent x cross join lateral generate_series(1, x.entries) i
cross join lateral pg_temp.time_of(i, x.entries) t(at);

insert into webhook_delivery (id, organization_id, webhook_id, item, announced_at, status, attempts, last_attempt_at,
  response_status, request, created_at)
select pg_temp.uuid_of(t.at, 'call' || i), x.organization_id, current_setting('bench.webhook'),
  jsonb_build_object('id', pg_temp.uuid_of(t.at, 'event' || i), 'type', 'webhook.test', 'webhook', current_setting('bench.webhook')),
  t.at, 'succeeded', 1, t.at, 200,
  jsonb_build_object('url', 'http://127.0.0.1:1/', 'timestamp', t.at, 'sizeBytes', 1000), t.at
from extent x cross join lateral generate_series(1, x.messages / 10) i
cross join lateral pg_temp.time_of(i, x.messages / 10) t(at);

insert into message_tombstone (message_id, organization_id, inbox_id, seq, deleted_at)
select 'msg_gone' || i, x.organization_id, x.inbox_id, -i, now()
from extent x cross join lateral generate_series(1, x.messages / 100) i;

-- Read rows of the outbox, which stay for some days.
insert into outbox (organization_id, items, created_at)
select x.organization_id, jsonb_build_array(jsonb_build_object('id', pg_temp.uuid_of(now(), 'item' || i), 'type', 'webhook.test')), now()
from extent x cross join lateral generate_series(1, x.messages / 100) i;
update outbox_cursor set (xact, seq) = (select xact, seq from outbox order by xact desc, seq desc limit 1);

-- The service has indexed the templates. Their words get the prefix of each part.
create temporary table part as
select m.seq / 4096 as ordinal, max(m.id) as last_id
from message m join extent x on x.inbox_id = m.inbox_id
where not exists (select from message_search s where s.message_id = m.id) group by 1;
create temporary table newest as select max(last_id) as id from part;
update search_part p set after_id = n.id, from_seq = b.message_seq + 1
from newest n, inbox b, extent x where b.id = x.inbox_id and p.inbox_id = x.inbox_id;
update searched_inbox k set before_id = null, until_seq = b.message_seq, newest_id = (
  select max(id) from message m where m.inbox_id = k.inbox_id)
from inbox b, extent x where b.id = x.inbox_id and k.inbox_id = x.inbox_id;
alter table part add number bigint;
insert into search_part (organization_id, inbox_id, after_id, from_seq)
select x.organization_id, x.inbox_id, coalesce(lag(p.last_id) over (order by p.ordinal), ''), p.ordinal * 4096
from part p, extent x order by p.ordinal;
update part p set number = s.number
from search_part s, extent x where s.inbox_id = x.inbox_id and s.from_seq = p.ordinal * 4096;

create temporary table words as
select p.ordinal, p.number, m.direction, regexp_replace(s.words::text, '''[0-9a-f]+_', '''' || to_hex(p.number) || '_', 'g')::tsvector as words
from part p cross join message_search s join message m on m.id = s.message_id;
insert into message_search (message_id, organization_id, inbox_id, words)
select m.id, m.organization_id, m.inbox_id, w.words
  || format('''%1$s_h%2$s'':900 ''%1$s_r%3$s'':901', to_hex(w.number), (regexp_match(m.subject, ' h(\d+)'))[1], (regexp_match(m.subject, ' r(\d+)'))[1])::tsvector
from message m join extent x on x.inbox_id = m.inbox_id join words w on w.ordinal = m.seq / 4096 and w.direction = m.direction
where m.seq >= 100 and not exists (select from message_search s where s.message_id = m.id)
order by m.id;

reset session_replication_role;
