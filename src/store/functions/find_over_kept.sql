-- Returns the ordinals of mails over the bounds of their kind of kept mail. `bounds`: array of {purpose, mails, bytes,
-- share}. A network may hold up to `share` times the mails, and the bytes, that stay free. Its first mail only needs to
-- fit.
create or replace function find_over_kept(kept jsonb, bounds jsonb) returns setof integer
language sql stable
as $$
  with wanted as materialized (
    select x.i, x.purpose, x.network, count(*) over w as mails, sum(x.size) over w as bytes,
      count(*) over n as own_mails, sum(x.size) over n as own_bytes
    from jsonb_to_recordset(kept) as x(i integer, purpose text, network text, size integer)
    window w as (partition by x.purpose order by x.i rows unbounded preceding),
      n as (partition by x.purpose, x.network order by x.i rows unbounded preceding)
  ), bound as materialized (
    select b.purpose, b.share, b.mails - held.mails as mails, b.bytes - held.bytes as bytes
    from jsonb_to_recordset(bounds) as b(purpose text, mails integer, bytes bigint, share float8)
    cross join lateral count_waiting_kept(b.purpose, null, b.mails) held
    where b.purpose in (select purpose from wanted)
  ), own as materialized (
    select o.purpose, o.network, held.mails, held.bytes
    from (select distinct purpose, network from wanted where network is not null) o
    join jsonb_to_recordset(bounds) as b(purpose text, mails integer) on b.purpose = o.purpose
    cross join lateral count_waiting_kept(o.purpose, o.network, b.mails) held
  )
  select x.i from (
    select w.i, b.share, b.mails - w.mails as free_mails, b.bytes - w.bytes as free_bytes,
      o.mails + w.own_mails as own_mails, o.bytes + w.own_bytes as own_bytes
    from wanted w join bound b on b.purpose = w.purpose
    left join own o on o.purpose = w.purpose and o.network = w.network
  ) x
  where x.free_mails < 0 or x.free_bytes < 0
    or (x.own_mails > 1 and (x.own_mails > x.share * x.free_mails or x.own_bytes > x.share * x.free_bytes))
$$;
