-- Seeds the traces that bench.messages messages of thirty days to a thousand domains leave behind.
-- They belong to the organization bench.organization and three others: roll-ups, unfolded deltas, and rows in the
-- tables that no metric may scan.
create temporary table share as
select n as rank, 'd' || n || '.test' as domain,
  (1.0 / n) / sum(1.0 / n) over () as share
from generate_series(1, 1000) n;

-- The spread of latencies over buckets: a bell around 2^(33/4) ms, a third of a second.
create temporary table spread as
select b as bucket, exp(-((b - 33) / 9.0) ^ 2) / sum(exp(-((b - 33) / 9.0) ^ 2)) over () as share
from generate_series(0, 111) b;

create temporary table owner as
select current_setting('bench.organization')::uuid as organization_id
union all select md5('organization' || n)::uuid from generate_series(1, 3) n;

create temporary table slot as
select grain, date_trunc(grain, now(), 'UTC') - n * ('1 ' || grain)::interval as at,
  current_setting('bench.messages')::float8 / steps as messages
from (values ('hour', 720, 740), ('day', 30, 31)) g(grain, steps, kept)
cross join lateral generate_series(0, g.kept) n;

-- Rounded up or down at random, so that sums of small numbers come out right.
insert into metric
select o.organization_id, 'total', s.grain, s.at, '', n, n, n, n / 10, n / 100, n / 1000, 0, 0, n / 2000, n,
  (select array_agg(floor(n * p.share + random())::integer order by p.bucket) from spread p)
from owner o cross join slot s cross join lateral (select floor(s.messages + random())::integer as n) counted
where n > 0;
insert into metric
select o.organization_id, 'own', s.grain, s.at, 'bench.test', n, n, n, n / 10, n / 100, n / 1000, 0, 0, n / 2000, n
from owner o cross join slot s cross join lateral (select floor(s.messages + random())::integer as n) counted
where n > 0 and s.grain = 'hour';
insert into metric
select organization_id, 'destination', grain, at, domain, 0, n, n, n / 10, n / 100, 0, 0, 0, 0, 0
from owner cross join slot cross join lateral (
  select p.domain, floor(slot.messages * p.share + random())::integer as n from share p
  where slot.messages * p.share > random() / 50 order by 2 desc, p.rank limit 40) counted
where n > 0;

-- Two seconds of deltas that are not folded yet.
insert into metric_delta (organization_id, at, counts)
select o.organization_id, now(), array[row('delivered', 'bench.test', 'd1.test', 33, 1)::metric_count]
from owner o cross join generate_series(1, 1 + (current_setting('bench.messages')::float8 / 30 / 86400 * 2 * 3)::integer);

-- A fiftieth of the messages themselves.
create temporary table sent as
select md5('submission' || n)::uuid as id, now() - n * interval '30 days' / (current_setting('bench.messages')::integer / 50) as at
from generate_series(1, current_setting('bench.messages')::integer / 50) n;
insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, sender, subject,
  metadata, purpose, status, created_at, updated_at)
select id, current_setting('bench.organization')::uuid, 'message', id::text, decode(md5(id::text), 'hex'), '\x00',
  '{"email": "u@bench.test"}', 'Seeded', '{}', 'unclassified', 'delivered', at, at
from sent;
insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status, due_at, expires_at,
  updated_at)
select id, 0, current_setting('bench.organization')::uuid, 'x@d1.test', 'x@d1.test', 'd1.test', '@relay', 'delivered', at, at, at
from sent;
insert into event (submission_id, seq, id, organization_id, type, recipient, at)
select id, 1, md5('event' || id)::uuid, current_setting('bench.organization')::uuid, 'delivered', 'x@d1.test', at
from sent;
