-- Whether mail sent with the key may go only to addresses that wrote to the inbox, or got mail from it.
alter table api_key add column confirm_new_recipients boolean not null default false;
