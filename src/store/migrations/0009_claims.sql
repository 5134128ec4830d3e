-- Who is at work on what waits: the node's number, and until when its claim holds; null: nobody. Room on the page, and no
-- index of these columns: a claim is an update in place.
alter table spool add column claimed_by integer, add column claimed_until timestamptz;
alter table kept_mail add column claimed_by integer, add column claimed_until timestamptz;
alter table scan add column claimed_by integer, add column claimed_until timestamptz;
alter table spool set (fillfactor = 50);
alter table kept_mail set (fillfactor = 50);
alter table scan set (fillfactor = 50);
drop index scan_due;

-- `lock_class` is what nodes of the release before take.
create or replace view work as
  select 'mail' as kind, 1936748396 as lock_class, id, organization_id, due_at, failures, size_bytes, claimed_by, claimed_until
    from spool
  union all
  select 'report', 1801810036, id, turn, due_at, failures, size_bytes, claimed_by, claimed_until from kept_mail
  union all
  select 'scan', 1935892846, message_id, organization_id, due_at, failures, 0, claimed_by, claimed_until from scan;
