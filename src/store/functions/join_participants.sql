-- Returns participants in order of first appearance, each once, up to 500.
create or replace function join_participants(known text[], added text[]) returns text[]
language sql immutable
as $$
  select coalesce(array_agg(email order by first), '{}')
  from (
    select email, min(ordinal) as first from unnest(known || added) with ordinality p(email, ordinal)
    where email is not null group by email order by min(ordinal) limit 500
  ) p
$$;
