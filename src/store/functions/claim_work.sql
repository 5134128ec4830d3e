-- Claims the work that `find_work` finds, for the node `owner` and the time `lease`. A lost claim (node gone, or lease
-- over) counts as a failure, because the work may have caused it. Calls for one kind run one at a time. They skip locked
-- rows, because another transaction is ending that work or its claim. A claim need not be durable: if a crash of the
-- database reverts it, the work is free again.
create or replace function claim_work(wanted_kind text, at timestamptz, owner integer, lease interval,
  wanted integer, most_bytes bigint, passed_over uuid[], after uuid, only_of uuid,
  out claimed text[], out until timestamptz, out last uuid, out is_more boolean)
language plpgsql
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  -- "work"
  perform pg_advisory_xact_lock(2003792491, hashtext(wanted_kind));
  select f.found_ids, f.last, f.is_more into claimed, last, is_more
  from find_work(wanted_kind, at, wanted, most_bytes, passed_over, after, only_of) f;
  until := now() + lease;
  if claimed = '{}' then return; end if;
  case wanted_kind
    when 'mail' then
      with free as (select s.id from spool s where s.id = any(claimed) for update skip locked), leased as (
        update spool s set claimed_by = owner, claimed_until = until,
          failures = s.failures + (s.claimed_by is not null)::integer
        from free where s.id = free.id returning s.id)
      select coalesce(array_agg(l.id), '{}') into claimed from leased l;
    when 'report' then
      with free as (select k.id from kept_mail k where k.id = any(claimed) for update skip locked), leased as (
        update kept_mail k set claimed_by = owner, claimed_until = until,
          failures = k.failures + (k.claimed_by is not null)::integer
        from free where k.id = free.id returning k.id)
      select coalesce(array_agg(l.id), '{}') into claimed from leased l;
    when 'scan' then
      with free as (select s.message_id as id from scan s where s.message_id = any(claimed) for update skip locked), leased as (
        update scan s set claimed_by = owner, claimed_until = until,
          failures = s.failures + (s.claimed_by is not null)::integer
        from free where s.message_id = free.id returning s.message_id as id)
      select coalesce(array_agg(l.id), '{}') into claimed from leased l;
  end case;
end $$;
