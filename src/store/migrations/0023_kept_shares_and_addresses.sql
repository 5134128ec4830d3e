-- The network that a kept mail came from, a /24 or /48: each has a share of what is kept. Null: trusted peers have none.
alter table kept_mail add column network text;
create index kept_mail_share on kept_mail (purpose, network) include (size_bytes, failures) where read_at is null;
drop index kept_mail_purpose;
-- A former owner of a domain may have inboxes on it still. The owner of now opens the same addresses beside them.
drop index inbox_address;
create unique index inbox_address on inbox (domain, local_part, domain_id) nulls not distinct where status = 'active';
