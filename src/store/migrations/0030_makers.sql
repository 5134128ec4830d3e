-- Who made the key or the endpoint. Null: the operator, a release before this column, or a person whose account is gone.
alter table api_key add column made_by uuid references person on delete set null;
create index api_key_made_by on api_key (made_by) where made_by is not null;
alter table webhook add column made_by uuid references person on delete set null;
create index webhook_made_by on webhook (made_by) where made_by is not null;
