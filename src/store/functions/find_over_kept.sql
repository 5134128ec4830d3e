-- The places of mails that would go past the bounds of their kind of kept mail: `bounds` has {purpose, mails, bytes} of each.
create or replace function find_over_kept(kept jsonb, bounds jsonb) returns setof integer
language sql stable
as $$
  with bound as materialized (
    select b.purpose, b.mails - held.mails as mails, b.bytes - held.bytes as bytes
    from jsonb_to_recordset(bounds) as b(purpose text, mails integer, bytes bigint)
    cross join lateral count_kept(b.purpose, b.mails) held
    where b.purpose in (select x.purpose from jsonb_to_recordset(kept) as x(purpose text))
  )
  select x.i from (
    select x.i, x.purpose, count(*) over w as mails, sum(x.size) over w as bytes
    from jsonb_to_recordset(kept) as x(i integer, purpose text, size integer)
    window w as (partition by x.purpose order by x.i rows unbounded preceding)
  ) x
  join bound b on b.purpose = x.purpose where x.mails > b.mails or x.bytes > b.bytes
$$;
