-- How much of a kind of kept mail there is, counted up to the bound of mails.
create or replace function count_kept(kind text, most_mails integer, out mails bigint, out bytes bigint)
language sql stable
as $$
  select count(*), coalesce(sum(k.size_bytes), 0) from (
    select size_bytes from kept_mail where purpose = kind limit most_mails) k
$$;
