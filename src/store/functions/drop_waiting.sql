-- Removes messages from the queue for indexing.
create or replace function drop_waiting(organizations uuid[], ordinals bigint[]) returns void
language sql
as $$
  delete from search_waiting where ctid = any(array(
    select w.ctid from unnest(organizations, ordinals) as x(organization_id, ordinal)
    cross join lateral (
      select f.ctid from search_waiting f where f.organization_id = x.organization_id and f.ordinal = x.ordinal limit 1
    ) w
  ))
$$;
