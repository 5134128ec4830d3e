-- Multiplies one received and one sent message, as the service itself stored them.
-- Makes the messages from bench.first to bench.last of bench.messages: four per thread, the last of each sent. Every
-- other thread is in the inbox bench.here, the rest in bench.elsewhere. Run the chunks in order, so that indexes of ids
-- grow at their right edge as in production.
-- Triggers are off: seeded rows cause no events and no counts.
set session_replication_role = replica;

create temporary table if not exists template as
select m.direction, m as message, t as thread, r as raw, s as submission, d as delivery
from message m
join thread t on t.id = m.thread_id
left join raw r on r.id = m.raw_id
left join submission s on s.id = m.submission_id
left join delivery d on d.submission_id = s.id
where m.inbox_id = current_setting('bench.here');

-- A version 7 UUID for a number, with the timestamp of the message's id.
create or replace function pg_temp.uuid_at(hex text, salt text) returns uuid
language sql immutable
as $$
  select (hex || '7' || substr(md5(salt), 1, 3) || '8' || substr(md5(salt), 4, 15))::uuid
$$;

create temporary table if not exists seed (
  i integer, inbox_id text, thread_id text, message_id text, seq bigint, direction text, raw_id uuid, submission_id uuid,
  at timestamptz, is_last boolean
);
truncate seed;
insert into seed
select i, current_setting(case when t % 2 = 0 then 'bench.here' else 'bench.elsewhere' end),
  'thr_' || first.hex || substr(md5('thread' || t), 1, 12),
  'msg_' || message.hex || substr(md5('message' || i), 1, 12),
  -- Numbers in the inbox continue after those of the templates.
  100 + ((t - 1) / 2) * 4 + (i - 1) % 4,
  case when i % 4 = 0 then 'outbound' else 'inbound' end,
  pg_temp.uuid_at(message.hex, 'raw' || i), pg_temp.uuid_at(message.hex, 'submission' || i), message.at, i % 4 = 0
from (
  select i, (i + 3) / 4 as t
  from generate_series(current_setting('bench.first')::integer, current_setting('bench.last')::integer) i
) numbered
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
    string_agg(coalesce(changes->>attname, format('(e.%I).%I', target, attname)), ', ' order by attnum)
  into columns, expressions
  from pg_attribute where attrelid = target and attnum > 0 and not attisdropped;
  execute format('insert into %s (%s) select %s from seed s join template e on e.direction = s.direction where %s order by s.i',
    target, columns, expressions, chosen);
end $$;

call pg_temp.multiply('raw', $$s.direction = 'inbound'$$, '{"id": "s.raw_id", "created_at": "s.at"}');
call pg_temp.multiply('thread', 's.is_last', jsonb_build_object(
  'id', 's.thread_id', 'inbox_id', 's.inbox_id', 'message_count', '4', 'last_message_at', 's.at', 'created_at', 's.at'));
call pg_temp.multiply('message', 'true', jsonb_build_object(
  'id', 's.message_id', 'inbox_id', 's.inbox_id', 'thread_id', 's.thread_id', 'seq', 's.seq',
  'internet_message_id', $$'<' || md5(s.message_id) || '@bench.test>'$$,
  'raw_id', $$case when s.direction = 'inbound' then s.raw_id end$$,
  'submission_id', $$case when s.direction = 'outbound' then s.submission_id end$$, 'created_at', 's.at', 'updated_at', 's.at'));
call pg_temp.multiply('submission', 's.is_last', jsonb_build_object(
  'id', 's.submission_id', 'idempotency_key', $$'seed-' || s.i$$,
  'idempotency_digest', $$decode(md5('digest' || s.submission_id), 'hex')$$, 'inbox_id', 's.inbox_id', 'message_id', 's.message_id',
  'created_at', 's.at', 'updated_at', 's.at'));
call pg_temp.multiply('delivery', 's.is_last', jsonb_build_object(
  'submission_id', 's.submission_id', 'inbox_id', 's.inbox_id', 'updated_at', 's.at'));

insert into event
select r.* from seed s
join template e on e.direction = s.direction
join event v on v.submission_id = (e.submission).id
cross join lateral jsonb_populate_record(v, jsonb_build_object(
  'submission_id', s.submission_id, 'id', md5('event' || s.i || '-' || v.seq)::uuid, 'at', s.at)) r
where s.is_last;

update inbox set message_seq = 100 + current_setting('bench.messages')::integer
where id in (current_setting('bench.here'), current_setting('bench.elsewhere'));

reset session_replication_role;
