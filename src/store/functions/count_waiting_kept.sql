-- Counts the unread kept mail of a kind, up to `most_mails` mails: from one network, or from all if `of_network` is null.
-- Reports that were set aside for operators do not count.
create or replace function count_waiting_kept(kind text, of_network text, most_mails integer, out mails bigint, out bytes bigint)
language plpgsql stable
as $$
begin
  if of_network is null then
    select count(*), coalesce(sum(k.size_bytes), 0) into mails, bytes from (
      select size_bytes from kept_mail where purpose = kind and read_at is null and (kind <> 'operator' or failures = 0)
      limit most_mails) k;
  else
    select count(*), coalesce(sum(k.size_bytes), 0) into mails, bytes from (
      select size_bytes from kept_mail where purpose = kind and network = of_network and read_at is null
        and (kind <> 'operator' or failures = 0)
      limit most_mails) k;
  end if;
end $$;
