-- Drops columns and a type that nothing uses. The order is that in which others lock them: claim_work the view before `node`, a
-- change of the secret key `database_identity` before it.
drop view work;
create view work as
  select 'mail' as kind, id, organization_id, due_at, failures, size_bytes, claimed_by, claimed_until from spool
  union all
  select 'report', id, turn, due_at, failures, size_bytes, claimed_by, claimed_until from kept_mail
  union all
  select 'scan', message_id, organization_id, due_at, failures, 0, claimed_by, claimed_until from scan;
drop type fact;

alter table database_identity drop column next_key_check;
alter table node drop column managed_domain, drop column mail_host, drop column key_checks;
