create or replace function domain_of(email text) returns text
language sql immutable
as $$
  select split_part(email, '@', -1)
$$;
