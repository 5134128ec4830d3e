-- Whether mail sent through the domain alone has a one-click link to unsubscribe (RFC 8058).
alter table domain add column one_click boolean not null default false;
