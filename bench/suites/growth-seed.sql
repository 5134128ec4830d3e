-- Multiplies one received and one sent message, as the service itself stored them, into bench.messages messages: four a
-- thread, the last of each sent; every other thread in the inbox bench.here, the rest in bench.elsewhere.
create temporary table template as
select m.direction, m as message, t as thread, r as raw, s as submission, d as delivery
from message m
join thread t on t.id = m.thread_id
left join raw r on r.id = m.raw_id
left join submission s on s.id = m.submission_id
left join delivery d on d.submission_id = s.id
where m.inbox_id = current_setting('bench.here');

create temporary table seed as
select i, t, current_setting(case when t % 2 = 0 then 'bench.here' else 'bench.elsewhere' end) as inbox_id,
  'thr_' || first.hex || substr(md5('thread' || t), 1, 12) as thread_id,
  'msg_' || message.hex || substr(md5('message' || i), 1, 12) as message_id,
  -- Numbers in the inbox go on after the templates'.
  100 + ((t - 1) / 2) * 4 + (i - 1) % 4 as seq,
  case when i % 4 = 0 then 'outbound' else 'inbound' end as direction,
  md5('raw' || i)::uuid as raw_id,
  md5('submission' || i)::uuid as submission_id,
  message.at
from (
  select i, (i + 3) / 4 as t from generate_series(1, current_setting('bench.messages')::integer) i
) numbered
cross join lateral (
  select now() - interval '30 days' + i * (interval '29 days' / current_setting('bench.messages')::integer) as at,
    now() - interval '30 days' + (t * 4 - 3) * (interval '29 days' / current_setting('bench.messages')::integer) as begun
) times
cross join lateral (select at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex) message
cross join lateral (select lpad(to_hex((extract(epoch from begun) * 1000)::bigint), 12, '0') as hex) first;

insert into raw
select r.* from seed s join template e on e.direction = s.direction
cross join lateral jsonb_populate_record(e.raw, jsonb_build_object('id', s.raw_id, 'created_at', s.at)) r
where s.direction = 'inbound';

insert into thread
select r.* from seed s join template e on e.direction = s.direction
cross join lateral jsonb_populate_record(e.thread, jsonb_build_object(
  'id', s.thread_id, 'inbox_id', s.inbox_id, 'message_count', 4, 'last_message_at', s.at, 'created_at', s.at)) r
where s.direction = 'outbound';

insert into message
select r.* from seed s join template e on e.direction = s.direction
cross join lateral jsonb_populate_record(e.message, jsonb_build_object(
  'id', s.message_id, 'inbox_id', s.inbox_id, 'thread_id', s.thread_id, 'seq', s.seq,
  'internet_message_id', '<' || md5(s.message_id) || '@bench.test>',
  'raw_id', case when s.direction = 'inbound' then s.raw_id end,
  'submission_id', case when s.direction = 'outbound' then s.submission_id end,
  'created_at', s.at, 'updated_at', s.at)) r;

insert into submission
select r.* from seed s join template e on e.direction = s.direction
cross join lateral jsonb_populate_record(e.submission, jsonb_build_object(
  'id', s.submission_id, 'idempotency_key', 'seed-' || s.i,
  'idempotency_digest', '\x' || md5('digest' || s.submission_id), 'inbox_id', s.inbox_id, 'message_id', s.message_id,
  'created_at', s.at, 'updated_at', s.at)) r
where s.direction = 'outbound';

insert into delivery
select r.* from seed s join template e on e.direction = s.direction
cross join lateral jsonb_populate_record(e.delivery, jsonb_build_object(
  'submission_id', s.submission_id, 'inbox_id', s.inbox_id, 'updated_at', s.at)) r
where s.direction = 'outbound';

insert into event
select r.* from seed s
join template e on e.direction = s.direction
join event v on v.submission_id = (e.submission).id
cross join lateral jsonb_populate_record(v, jsonb_build_object(
  'submission_id', s.submission_id, 'id', md5('event' || s.i || '-' || v.seq)::uuid, 'at', s.at)) r
where s.direction = 'outbound';

update inbox set message_seq = 100 + current_setting('bench.messages')::integer
where id in (current_setting('bench.here'), current_setting('bench.elsewhere'));
