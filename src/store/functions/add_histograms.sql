create or replace function add_histograms(one integer[], other integer[]) returns integer[]
language sql immutable
as $$
  select case when one is null then other when other is null then one
    else array(select n.one + n.other from unnest(one, other) as n(one, other)) end
$$;
