-- Multiplies one received and one sent message, as the service itself stored them.
-- Makes the messages from bench.first to bench.last of bench.messages: four per thread, the last of each sent. A quarter
-- of the threads is in the inbox bench.here, a quarter in bench.elsewhere, and the rest in a hundred other organizations.
-- Run the chunks in order, so that indexes of ids grow at their right edge as in production.
-- Triggers are off: seeded rows cause no events and no counts.
set session_replication_role = replica;

create temporary table if not exists template_message as
select m.direction as chosen, m.* from message m where m.inbox_id = current_setting('bench.here');
create temporary table if not exists template_thread as
select m.chosen, t.* from template_message m join thread t on t.id = m.thread_id;
create temporary table if not exists template_raw as
select m.chosen, r.* from template_message m join raw r on r.id = m.raw_id;
create temporary table if not exists template_submission as
select m.chosen, s.* from template_message m join submission s on s.id = m.submission_id;
create temporary table if not exists template_delivery as
select m.chosen, d.* from template_message m join delivery d on d.submission_id = m.submission_id;
create temporary table if not exists template_event as
select m.chosen, v.* from template_message m join event v on v.submission_id = m.submission_id;

create temporary table if not exists home as
select 0 as number, b.id as inbox_id, b.organization_id, b as inbox, o as organization
from inbox b join organization o on o.id = b.organization_id where b.id = current_setting('bench.here');
insert into home
select 1, current_setting('bench.elsewhere'), organization_id from home where not exists (select from home where number = 1)
union all
select n + 1, 'inb_' || lpad(n::text, 24, '0'), md5('organization' || n)::uuid
from generate_series(1, 100) n where not exists (select from home where number = 2);
insert into organization
select r.* from home h join home own on own.number = 0
cross join lateral jsonb_populate_record(own.organization, jsonb_build_object('id', h.organization_id, 'name', h.inbox_id)) r
where h.number > 1 on conflict do nothing;
insert into inbox
select r.* from home h join home own on own.number = 0
cross join lateral jsonb_populate_record(own.inbox, jsonb_build_object('id', h.inbox_id, 'organization_id', h.organization_id,
  'local_part', h.inbox_id, 'idempotency_key', null)) r
where h.number > 1 on conflict do nothing;

-- A version 7 UUID for a number, with the timestamp of the message's id.
create or replace function pg_temp.uuid_at(hex text, salt text) returns uuid
language sql immutable
as $$
  select (hex || '7' || substr(md5(salt), 1, 3) || '8' || substr(md5(salt), 4, 15))::uuid
$$;

create temporary table if not exists seed (
  i integer, organization_id uuid, inbox_id text, thread_id text, message_id text, seq bigint, direction text, raw_id uuid, submission_id uuid,
  at timestamptz, is_last boolean
);
truncate seed;
insert into seed
select i, h.organization_id, h.inbox_id,
  'thr_' || first.hex || substr(md5('thread' || t), 1, 12),
  'msg_' || message.hex || substr(md5('message' || i), 1, 12),
  -- Numbers in the inbox continue after those of the templates.
  100 + (t / 4) * 4 + (i - 1) % 4,
  case when i % 4 = 0 then 'outbound' else 'inbound' end,
  pg_temp.uuid_at(message.hex, 'raw' || i), pg_temp.uuid_at(message.hex, 'submission' || i), message.at, i % 4 = 0
from (
  select i, (i + 3) / 4 as t
  from generate_series(current_setting('bench.first')::integer, current_setting('bench.last')::integer) i
) numbered
join home h on h.number = case t % 4 when 0 then 0 when 1 then 1 else t % 100 + 2 end
cross join lateral (
  select now() - interval '30 days' + i * (interval '29 days' / current_setting('bench.messages')::integer) as at,
    now() - interval '30 days' + (t * 4 - 3) * (interval '29 days' / current_setting('bench.messages')::integer) as begun
) times
cross join lateral (select at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex) message
cross join lateral (select lpad(to_hex((extract(epoch from begun) * 1000)::bigint), 12, '0') as hex) first;

-- Inserts a row of `target` for each row of seed that `chosen` picks: the template's row, with `changes` applied.
create or replace procedure pg_temp.multiply(target regclass, chosen text, changes jsonb)
language plpgsql
as $$
declare
  columns text;
  expressions text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum),
    string_agg(coalesce(changes->>attname, format('t.%I', attname)), ', ' order by attnum)
  into columns, expressions
  from pg_attribute where attrelid = target and attnum > 0 and not attisdropped and attgenerated = '';
  execute format('insert into %s (%s) select %s from seed s join template_%s t on t.chosen = s.direction where %s order by s.i',
    target, columns, expressions, target, chosen);
end $$;

call pg_temp.multiply('raw', $$s.direction = 'inbound'$$, '{"id": "s.raw_id", "created_at": "s.at"}');
call pg_temp.multiply('thread', 's.is_last', jsonb_build_object(
  'id', 's.thread_id', 'organization_id', 's.organization_id', 'inbox_id', 's.inbox_id',
  'message_count', '4', 'last_message_at', 's.at', 'created_at', 's.at'));
call pg_temp.multiply('message', 'true', jsonb_build_object(
  'id', 's.message_id', 'organization_id', 's.organization_id', 'inbox_id', 's.inbox_id', 'thread_id', 's.thread_id',
  'seq', 's.seq', 'subject', $$t.subject || format(' h%s r%s', s.i / 4 % 40, s.i / 400)$$,
  'internet_message_id', $$'<' || md5(s.message_id) || '@bench.test>'$$,
  'raw_id', $$case when s.direction = 'inbound' then s.raw_id end$$,
  'submission_id', $$case when s.direction = 'outbound' then s.submission_id end$$, 'created_at', 's.at', 'updated_at', 's.at'));
call pg_temp.multiply('submission', 's.is_last', jsonb_build_object(
  'id', 's.submission_id', 'organization_id', 's.organization_id', 'idempotency_key', $$'seed-' || s.i$$,
  'idempotency_digest', $$decode(md5('digest' || s.submission_id), 'hex')$$, 'inbox_id', 's.inbox_id', 'message_id', 's.message_id',
  'created_at', 's.at', 'updated_at', 's.at'));
call pg_temp.multiply('delivery', 's.is_last', jsonb_build_object(
  'submission_id', 's.submission_id', 'organization_id', 's.organization_id', 'inbox_id', 's.inbox_id', 'updated_at', 's.at',
  'email', $$'u' || s.i / 400 || '@far.test'$$, 'address_key', $$'u' || s.i / 400 || '@far.test'$$));

call pg_temp.multiply('event', 's.is_last', jsonb_build_object(
  'submission_id', 's.submission_id', 'organization_id', 's.organization_id', 'at', 's.at',
  'id', $$md5('event' || s.i || '-' || t.seq)::uuid$$));

update inbox set message_seq = 200 + current_setting('bench.messages')::integer / 4
where id in (select inbox_id from home);

reset session_replication_role;
