-- No query asks for a complaint by its id alone: the list of an organization is the key.
alter table complaint drop constraint complaint_pkey;
drop index complaint_recent;
alter table complaint add primary key (organization_id, id);
