-- What all nodes have to agree on: each refuses mail for the inboxes of a managed domain that is not its own.
alter table node add column managed_domain text;
alter table node add column mail_host text;
