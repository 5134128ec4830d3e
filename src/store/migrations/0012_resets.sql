-- Of a link to a new password: for whoever has the address once it is used. The release before names the person instead.
alter table person_token add column email text;
create index person_token_email on person_token (email) where email is not null;
