-- A sign-up's own name and password, until its link confirms the address: several may be pending for one address.
alter table person_token add column name text;
alter table person_token add column password_hash text;
-- When the address was last proved by a mailed link, where that was after it was confirmed.
alter table person add column proved_at timestamptz;
-- When the identity at the provider was linked; null: the release before linked it, or there is none.
alter table person add column oidc_linked_at timestamptz;

-- Networks from which an account has signed in, both in one keyed digest.
create table known_network (
  subject bytea primary key,
  last_at timestamptz not null
);
create index known_network_last on known_network (last_at);
