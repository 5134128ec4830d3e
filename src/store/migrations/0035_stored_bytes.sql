-- Bytes of received mail that an organization keeps: the sizes of its spool rows and of the raw rows of its received messages,
-- each counted once for each inbox. `received_usage` has the sum without the rows of `stored_delta`.
alter table received_usage add column stored_bytes bigint not null default 0;

-- Bytes that one commit deleted. A row of its own, because a delete that updated `received_usage` would hold up receiving.
create table stored_delta (
  organization_id uuid not null,
  id bigint generated always as identity,
  bytes bigint not null,
  primary key (organization_id, id)
);

-- Cost: reads each received message once, and its row of `raw` without the bytes. No mail is received meanwhile.
update received_usage u set stored_bytes = n.bytes
from (
  select k.organization_id, sum(k.bytes) as bytes from (
    select organization_id, size_bytes as bytes from spool
    union all
    select m.organization_id, r.size_bytes from message m join raw r on r.id = m.raw_id where m.direction = 'inbound'
  ) k group by 1
) n where n.organization_id = u.organization_id;

-- The default of the limit, or twice as much as is kept: no update makes an organization refuse mail at once.
update organization o set limits = o.limits || jsonb_build_object('storedBytes', greatest(21474836480, 2 * u.stored_bytes))
from received_usage u where u.organization_id = o.id;
