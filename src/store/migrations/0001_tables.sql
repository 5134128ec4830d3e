-- Every table that belongs to an organization carries organization_id, so that a cell can be split later.

create table organization (
  id uuid primary key,
  name text not null,
  -- A deleted one stays as a tombstone without a name, for those of its addresses.
  status text not null check (status in ('pending', 'active', 'suspended', 'deleting', 'deleted')),
  limits jsonb not null,
  managed_used integer not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- One row an organization: what its volume limits count. Locked in organization order by accept_sends.
create table usage (
  organization_id uuid primary key references organization,
  minute_started_at timestamptz not null default '-infinity',
  minute_messages integer not null default 0,
  day date not null default '-infinity',
  day_messages integer not null default 0,
  day_recipients integer not null default 0
) with (fillfactor = 50);

-- One row an organization: what was received for it on a UTC day. Apart from `usage`, so that receiving and accepting for one
-- organization do not wait for each other. Locked in organization order by receive_mails.
create table received_usage (
  organization_id uuid primary key references organization on delete cascade,
  day date not null default '-infinity',
  messages bigint not null default 0,
  bytes bigint not null default 0
) with (fillfactor = 50);

create table api_key (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  kind text not null check (kind in ('agent', 'server', 'dashboard')),
  hash bytea not null unique,
  scopes text[] not null,
  inbox_ids text[],
  allowed_ips text[],
  send_mode text not null check (send_mode in ('new_and_reply', 'reply_only')),
  allowed_recipient_domains text[],
  expires_at timestamptz,
  -- Null: the organization's.
  requests_per_minute integer,
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index api_key_organization on api_key (organization_id, id);

-- Requests of a key's running minute that nodes have borrowed.
create table request_window (
  key_id uuid primary key references api_key,
  started_at timestamptz not null,
  granted integer not null
) with (fillfactor = 50);

-- A deleted inbox stays as a tombstone: its address never goes to another organization.
create table inbox (
  id text primary key,
  organization_id uuid not null references organization,
  local_part text not null,
  domain text not null,
  domain_id uuid,
  display_name text not null,
  status text not null check (status in ('active', 'deleted')),
  message_seq bigint not null default 0,
  idempotency_key text,
  request_hash bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  purged boolean not null default false
) with (fillfactor = 80);
create unique index inbox_address on inbox (domain, local_part) where status = 'active';
create index inbox_tombstone on inbox (domain, local_part) where status = 'deleted';
create index inbox_unpurged on inbox (id) where status = 'deleted' and not purged;
create index inbox_organization on inbox (organization_id, id);
create index inbox_managed on inbox (domain) where domain_id is null and status = 'active';
create unique index inbox_idempotency on inbox (organization_id, idempotency_key) where idempotency_key is not null;

create table thread (
  id text primary key,
  organization_id uuid not null,
  inbox_id text not null,
  subject text not null,
  participants text[] not null,
  message_count integer not null,
  last_message_at timestamptz not null,
  created_at timestamptz not null
);
create index thread_recent on thread (inbox_id, last_message_at desc, id desc);

-- Bytes as they came or go: a received envelope's message, shared by its recipients, or an outbound attachment.
-- Up to 256 KiB they stand here, above that in a blob.
create table raw (
  id uuid primary key,
  size_bytes integer not null,
  bytes bytea,
  blob text,
  created_at timestamptz not null,
  check ((bytes is null) <> (blob is null))
) with (toast_tuple_target = 8160);
alter table raw alter column bytes set storage external;

create table message (
  id text primary key,
  organization_id uuid not null,
  inbox_id text not null,
  thread_id text not null,
  seq bigint not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  internet_message_id text not null,
  in_reply_to text,
  reference_ids text[] not null,
  sender jsonb not null,
  recipients jsonb not null,
  subject text not null,
  text text not null,
  html text,
  -- Null where it is the text without the white space around it.
  extracted_text text,
  metadata jsonb not null,
  purpose text not null,
  attachments jsonb not null,
  security jsonb,
  submission_id uuid,
  -- How its submission ended, once that has been removed: `submission_id` is all that is left of it then.
  settled_as text,
  settled_code text,
  raw_id uuid,
  filing_note text,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (toast_tuple_target = 8160);
-- Kept as they came: compressing and moving 5 KB out of the row costs more than the rest of its insertion.
alter table message alter column text set storage external;
alter table message alter column html set storage external;
alter table message alter column extracted_text set storage external;
create unique index message_export on message (inbox_id, seq);
-- One index for all lists of an inbox: of one direction, or of both, merged.
create index message_direction on message (inbox_id, direction, id);
-- What an inbox sends is from itself, so only who wrote to it is looked up. An address can be longer than an entry may be.
create index message_sender on message (inbox_id, left(lower(sender->>'email'), 400), id) where direction = 'inbound';
create index message_thread on message (thread_id, seq);
create index message_internet_id on message (inbox_id, internet_message_id);
create index message_raw on message (raw_id) where raw_id is not null;

-- One accepted send. Its recipients' list never changes; their states are rows of delivery.
create table submission (
  id uuid primary key,
  organization_id uuid not null,
  operation text not null,
  idempotency_key text not null,
  -- Of organization, operation and key together: one column, so that there is only one index that a look-up can take.
  idempotency_digest bytea not null,
  request_hash bytea not null,
  inbox_id text,
  message_id text,
  result_deleted boolean not null default false,
  sender jsonb not null,
  subject text not null,
  metadata jsonb not null,
  purpose text not null,
  status text not null check (status in ('pending', 'delivered', 'partially_delivered', 'failed')),
  response text,
  failure_code text,
  event_seq integer not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 80);
create unique index submission_idempotency on submission (idempotency_digest);
-- For lists of one status, or of all four, merged: a list without a status would be an index more for each acceptance.
create index submission_status on submission (organization_id, status, id);
create index submission_inbox on submission (inbox_id, status, id) where inbox_id is not null;

-- The state of one recipient. claim_epoch is set while it is on the wire, under the route's lease of that epoch.
create table delivery (
  submission_id uuid not null,
  position integer not null,
  organization_id uuid not null,
  inbox_id text,
  email text not null,
  address_key text not null,
  domain text not null,
  route text not null,
  status text not null check (status in ('pending', 'deferred', 'delivered', 'bounced', 'failed', 'suppressed')),
  attempts integer not null default 0,
  -- Of the attempts, those that a lasting fault of ours ended before the message was written.
  own_faults integer not null default 0,
  queued_at timestamptz,
  due_at timestamptz not null,
  expires_at timestamptz not null,
  claim_epoch bigint,
  response text,
  failure_code text,
  updated_at timestamptz not null,
  primary key (submission_id, position)
) with (fillfactor = 70);
-- What was never tried stands apart from what waits for its next attempt: looking for the one passes over none of the other.
create index delivery_waiting on delivery (route, status, organization_id, due_at)
  where claim_epoch is null and status in ('pending', 'deferred');
create index delivery_expiring on delivery (expires_at) where claim_epoch is null and status in ('pending', 'deferred');
create index delivery_claimed on delivery (route, claim_epoch) where claim_epoch is not null;
create index delivery_address on delivery (organization_id, address_key, submission_id);

-- Facts told to customers. Sequence 0, accepted, is the submission itself.
create table event (
  submission_id uuid not null,
  seq integer not null,
  id uuid not null,
  organization_id uuid not null,
  type text not null,
  recipient text,
  at timestamptz not null,
  attempt integer,
  remote jsonb,
  response text,
  enhanced_status text,
  classification text,
  primary key (submission_id, seq)
);

-- A destination queue: the next hop of deliveries. It belongs to no organization. Its owner holds a lease with an epoch.
create table route (
  key text primary key,
  owner bigint,
  epoch bigint not null default 0,
  lease_until timestamptz,
  paused boolean not null default false,
  failures integer not null default 0,
  not_before timestamptz,
  last_fault text,
  -- network, dns or tls.
  last_fault_class text,
  last_fault_at timestamptz,
  created_at timestamptz not null
) with (fillfactor = 50);

-- Received envelopes that wait to be filed, one row an inbox. The id becomes the message's.
create table spool (
  id text primary key,
  organization_id uuid not null,
  inbox_id text not null,
  raw_id uuid not null,
  size_bytes integer not null,
  envelope jsonb not null,
  received_at timestamptz not null,
  failures integer not null default 0,
  due_at timestamptz not null
) with (fillfactor = 80);
create index spool_turn on spool (organization_id, due_at);
create index spool_raw on spool (raw_id);

-- Mail to the addresses that the service itself needs: postmaster, abuse, fbl and the return paths.
create table kept_mail (
  id text primary key,
  purpose text not null check (purpose in ('operator', 'feedback', 'return_path')),
  address text not null,
  -- Whose mail is reported, where the return path says it; null otherwise.
  organization_id uuid,
  raw_id uuid not null,
  size_bytes integer not null,
  envelope jsonb not null,
  received_at timestamptz not null
);
create index kept_mail_raw on kept_mail (raw_id);
create index kept_mail_purpose on kept_mail (purpose) include (size_bytes);

-- What the embedded capture server took, in development.
create table captured_mail (
  id uuid primary key,
  sender text not null,
  recipients text[] not null,
  raw_id uuid not null,
  captured_at timestamptz not null
);
create index captured_mail_raw on captured_mail (raw_id);

-- Signing keys, sealed by the secret key. No organization: the deployment's own domain.
create table dkim_key (
  domain text not null,
  selector text not null,
  organization_id uuid,
  algorithm text not null check (algorithm in ('rsa-sha256', 'ed25519-sha256')),
  sealed_key bytea not null,
  public_record text not null,
  created_at timestamptz not null,
  primary key (domain, selector)
);

-- Nodes that are up hold an advisory lock under their id, so that a dead one is seen at once.
create sequence node_id;
create table node (
  id bigint primary key,
  smtp_address text,
  capture_address text,
  -- What it has left in its blob folder: the number of its data folder, and a word.
  mark_folder bigint,
  mark_word text,
  started_at timestamptz not null
);

-- No query compares these; sampling wide values costs more than the rest of an analysis.
alter table message alter column text set statistics 0;
alter table message alter column html set statistics 0;
alter table message alter column extracted_text set statistics 0;
alter table message alter column sender set statistics 0;
alter table message alter column recipients set statistics 0;
alter table message alter column reference_ids set statistics 0;
alter table message alter column attachments set statistics 0;
alter table message alter column security set statistics 0;
alter table raw alter column bytes set statistics 0;
alter table spool alter column envelope set statistics 0;
alter table submission alter column sender set statistics 0;
alter table thread alter column participants set statistics 0;
