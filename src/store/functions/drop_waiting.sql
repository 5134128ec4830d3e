-- Messages wait no longer.
create or replace function drop_waiting(organizations uuid[], places bigint[]) returns void
language sql
as $$
  delete from search_waiting where ctid = any(array(
    select w.ctid from unnest(organizations, places) as x(organization_id, place)
    cross join lateral (
      select f.ctid from search_waiting f where f.organization_id = x.organization_id and f.place = x.place limit 1
    ) w
  ))
$$;
