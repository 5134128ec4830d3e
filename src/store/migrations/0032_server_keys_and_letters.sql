-- Whether the members of the organization may make server keys, as the operator granted it.
alter table organization add column server_keys boolean not null default false;

-- The letter about the organization that is due: to the operator about a request, or to its owners about the approval.
alter table organization add column letter_due text check (letter_due in ('request', 'approval'));
create index organization_letter_due on organization (letter_due) where letter_due is not null;
