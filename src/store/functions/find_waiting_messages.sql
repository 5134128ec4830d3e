-- Returns up to `wanted` waiting messages of up to 32 organizations: the first message of each, then the second of each,
-- and so on. Takes the organizations after `after`, then those from the lowest id up to it. The number of probes does not
-- grow with the number of waiting organizations.
create or replace function find_waiting_messages(after uuid, wanted integer)
returns table (organization_id uuid, ordinal bigint, message_id text)
language sql stable
set enable_bitmapscan = off
set enable_sort = off
as $$
  with recursive next_organization as (
    select 0 as number, coalesce(after, '00000000-0000-0000-0000-000000000000') as organization_id,
      after is null as is_round
    union all
    select t.number + 1, n.organization_id, n.is_round
    from next_organization t cross join lateral (
      select * from (
        (select w.organization_id, t.is_round from search_waiting w
        where w.organization_id > t.organization_id order by w.organization_id limit 1)
        union all
        (select w.organization_id, true from search_waiting w
        where not t.is_round and w.organization_id <= after order by w.organization_id limit 1)
      ) x order by x.is_round limit 1
    ) n
    where t.number < 32 and (after is null or not n.is_round or n.organization_id <= after)
  )
  select t.organization_id, w.ordinal, w.message_id
  from next_organization t cross join lateral (
    select x.ordinal, x.message_id, row_number() over (order by x.ordinal) as rank from (
      select * from search_waiting f where f.organization_id = t.organization_id order by f.ordinal limit wanted
    ) x
  ) w
  where t.number > 0 order by w.rank, t.number limit wanted
$$;
