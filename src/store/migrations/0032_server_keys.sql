-- Whether the members of the organization may make server keys, as the operator granted it.
alter table organization add column server_keys boolean not null default false;
