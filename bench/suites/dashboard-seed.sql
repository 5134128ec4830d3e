-- Puts bench.threads threads of one received message each, the latest an hour old, into the inbox bench.inbox.
-- Triggers are off: seeded rows cause no events and no counts.
set session_replication_role = replica;

create temporary table seed as
select i, current_setting('bench.organization')::uuid as organization_id, current_setting('bench.inbox') as inbox_id,
  'thr_' || at.hex || substr(md5('thread' || i), 1, 12) as thread_id,
  'msg_' || at.hex || substr(md5('message' || i), 1, 12) as message_id,
  'person' || i % 997 || '@example' || i % 13 || '.test' as sender,
  (array['Your table for two on Friday', 'Invoice ' || i || ' is due', 'A question about what you wrote last week and what became of it',
    'Weekly numbers', 'Welcome'])[1 + i % 5] as subject,
  at.at
from generate_series(1, current_setting('bench.threads')::integer) i
cross join lateral (select now() - interval '1 hour' - i * interval '3 minutes' as at) moment
cross join lateral (select moment.at, lpad(to_hex((extract(epoch from moment.at) * 1000)::bigint), 12, '0') as hex) at;

insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
select thread_id, organization_id, inbox_id, subject, array[sender, current_setting('bench.address')], 1 + i % 4, at, at
from seed;

insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids, sender,
  recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
select message_id, organization_id, inbox_id, thread_id, i, 'inbound', '<' || i || '@bench.test>', '{}',
  jsonb_build_object('email', sender), jsonb_build_object('to', jsonb_build_array(jsonb_build_object('email', current_setting('bench.address')))),
  subject, 'Hello, this is message ' || i || '.', '{}', 'unclassified', '[]', at, at
from seed;

update inbox set message_seq = current_setting('bench.threads')::bigint where id = current_setting('bench.inbox');
drop table seed;
