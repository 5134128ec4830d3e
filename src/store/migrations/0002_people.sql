-- People: who signs in to the dashboard, what they may do for which organization, and what they did.

create table person (
  id uuid primary key,
  -- As it is compared: lower case, the domain in ASCII.
  email text not null unique,
  name text not null,
  -- PHC string of argon2id; null: signs in by a passkey, an identity provider or a link.
  password_hash text,
  -- Null until the address has been proved.
  confirmed_at timestamptz,
  -- What an identity provider calls the person: issuer and subject.
  oidc_issuer text,
  oidc_subject text,
  created_at timestamptz not null,
  unique (oidc_issuer, oidc_subject)
);

create table passkey (
  id uuid primary key,
  person_id uuid not null references person on delete cascade,
  credential_id bytea not null unique,
  public_key bytea not null,
  sign_count bigint not null,
  transports text[] not null,
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkey_person on passkey (person_id);

-- A key that belongs to a person is what requests of a session are counted and judged by; its secret exists nowhere.
alter table api_key add column person_id uuid references person;

create table member (
  organization_id uuid not null references organization,
  person_id uuid not null references person on delete cascade,
  role text not null check (role in ('owner', 'member', 'viewer')),
  key_id uuid not null unique references api_key,
  created_at timestamptz not null,
  primary key (organization_id, person_id)
);
create index member_person on member (person_id);

create table invitation (
  id uuid primary key,
  organization_id uuid not null references organization,
  email text not null,
  role text not null check (role in ('owner', 'member', 'viewer')),
  invited_by uuid references person on delete set null,
  token_hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  unique (organization_id, email)
);

-- By the digest of its token; a person without one is the operator, on the operator's own listener.
create table session (
  id uuid primary key,
  token_hash bytea not null unique,
  person_id uuid references person on delete cascade,
  -- The organization that its requests are for.
  organization_id uuid references organization,
  user_agent text not null,
  ip text not null,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  ended_at timestamptz
);
create index session_person on session (person_id, id) where ended_at is null;
create index session_organization on session (organization_id);

-- What is sent or printed as a link, by its digest; used once.
create table person_token (
  token_hash bytea primary key,
  purpose text not null check (purpose in ('confirm', 'reset', 'sign_in', 'operator')),
  person_id uuid references person on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index person_token_person on person_token (person_id);

-- Failed sign-ins of an account or a network, both by a keyed digest.
create table sign_in_failure (
  subject bytea primary key,
  failures integer not null,
  blocked_until timestamptz not null,
  last_at timestamptz not null
);

-- Who did what, when, from where. Neither the person nor what was acted on need be there any more.
create table audit_entry (
  id uuid primary key,
  -- Null: it concerned the deployment.
  organization_id uuid,
  -- A person's address, "operator", or a key's name.
  actor text not null,
  action text not null,
  subject text not null,
  detail jsonb not null,
  ip text,
  at timestamptz not null
);
create index audit_entry_organization on audit_entry (organization_id, id);
