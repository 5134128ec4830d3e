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

-- One row an organization: what its volume limits count. Locked in organization order by decide_sends.
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

-- Requests of a key's running minute that nodes have borrowed; the last of them may go beyond what the key may make.
create table request_window (
  key_id uuid not null references api_key on delete cascade,
  started_at timestamptz not null,
  granted integer not null,
  primary key (key_id, started_at)
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
  -- Received: a program wrote it, by its header or its null sender.
  automatic boolean not null default false,
  -- Sent: further header fields; null where there are none.
  headers jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (toast_tuple_target = 8160);
-- Kept as they came: compressing and moving 5 KB out of the row costs more than the rest of its insertion.
alter table message alter column text set storage external;
alter table message alter column html set storage external;
alter table message alter column extracted_text set storage external;
-- The order of filing, of one direction, or of both, merged: who waits for answers passes over nothing that was sent.
create unique index message_filing on message (inbox_id, direction, seq);
-- One index for all lists of an inbox: of one direction, or of both, merged.
create index message_direction on message (inbox_id, direction, id);
-- What an inbox sends is from itself, so only who wrote to it is looked up. An address can be longer than an entry may be.
create index message_sender on message (inbox_id, left(lower(sender->>'email'), 400), id) where direction = 'inbound';
create index message_thread on message (thread_id, seq);
create index message_internet_id on message (inbox_id, internet_message_id);
create index message_raw on message (raw_id) where raw_id is not null;

-- Where a deleted message stood in its inbox's order of filing, so that who read it last can go on behind it.
create table message_tombstone (
  message_id text primary key,
  organization_id uuid not null,
  inbox_id text not null,
  seq bigint not null,
  deleted_at timestamptz not null
);
create index message_tombstone_inbox on message_tombstone (inbox_id);
create index message_tombstone_age on message_tombstone (deleted_at);

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
alter table message alter column headers set statistics 0;
alter table raw alter column bytes set statistics 0;
alter table spool alter column envelope set statistics 0;
alter table submission alter column sender set statistics 0;
alter table thread alter column participants set statistics 0;

-- Delivery: claims, results and endings, each one call a batch.

-- An event to come of one recipient of a submission; `step` orders those of one moment.
create type fact as (submission uuid, "position" integer, step integer, id uuid, type text, recipient text, at timestamptz,
  attempt integer, remote jsonb, response text, enhanced text, classification text);

-- Receiving and filing: mail is taken within bounds; spool rows become messages of threads, exactly once, and are told of.

create index raw_blob on raw (id) where blob is not null;

-- Which database this is: one row, restored with the rest. A folder of blobs is marked with it, so that no other
-- database's service takes them for files without an owner.
create table database_identity (id uuid primary key, secret_key_check bytea);
insert into database_identity (id) values (gen_random_uuid());

-- Certificates from an authority that speaks ACME. Nodes share one account and one certificate, and any of them answers for it.

-- An account, under the URL of the authority's directory, with the certificate that it got and what became of its orders.
create table acme_account (
  directory text primary key,
  sealed_key bytea not null,
  -- PEM, the certificate itself first; null before there is one, and once it was revoked. The key is sealed.
  chain text,
  sealed_certificate_key bytea,
  names text[] not null default '{}',
  issued_at timestamptz,
  expires_at timestamptz,
  -- Orders that failed one after the other, before when no other is made, and what the last one failed of.
  failures integer not null default 0,
  retry_at timestamptz,
  fault text,
  -- Names that had to be left out: array of {name, reason, failures, retryAt}.
  refusals jsonb not null default '[]',
  created_at timestamptz not null
);

-- What a node answers under /.well-known/acme-challenge/ while an order is under way.
create table acme_challenge (
  token text primary key,
  key_authorization text not null,
  expires_at timestamptz not null
);

-- Customers' domains: claims, what DNS showed of them, and the keys that sign for them.

-- A claim on a name. Several organizations may claim one; only one of them can have proved it.
create table domain (
  id uuid primary key,
  organization_id uuid not null references organization,
  name text not null,
  challenge text not null,
  status text not null check (status in ('pending', 'verified', 'failed')),
  outbound text not null check (outbound in ('pending', 'verified', 'failed')),
  inbound text not null check (inbound in ('pending', 'verified', 'failed')),
  -- Of ownership, outbound and inbound each: {reasons, checkedAt, failures, failingSince}.
  standing jsonb not null,
  -- By the record's type and name: {status, observed, checkedAt}.
  observations jsonb not null,
  -- When the look-ups began that the row shows.
  checked_at timestamptz,
  -- Null until it was proved once.
  next_check_at timestamptz,
  verified_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 80);
create unique index domain_proved on domain (name) where status = 'verified';
create unique index domain_claim on domain (organization_id, name);
create index domain_organization on domain (organization_id, id);
create index domain_due on domain (next_check_at) where next_check_at is not null;

-- Keys of customers' domains beside the deployment's own (no domain_id). Pending ones have not been seen in DNS and
-- do not sign; retired ones were followed by others and stay listed for a while. They go with their domain.
alter table dkim_key add column domain_id uuid references domain on delete cascade;
alter table dkim_key add column state text not null default 'active' check (state in ('pending', 'active', 'retired'));
alter table dkim_key add column retired_at timestamptz;
create index dkim_key_domain on dkim_key (domain_id) where domain_id is not null;
create index dkim_key_retired on dkim_key (retired_at) where retired_at is not null;

-- What is told to customers: the outbox, one appended row an organization and commit, and the calls of their webhooks.
-- Ids made of time commit out of order, so the order is that of transactions: readers keep to rows whose transaction is
-- older than all that still run, and never miss one behind their cursor.

create table outbox (
  xact xid8 not null default pg_current_xact_id(),
  seq bigint generated by default as identity,
  organization_id uuid not null,
  -- Array of {id, type, …}: a reference to what it tells of (submission and event, message, …), or carries its `content`.
  items jsonb not null,
  created_at timestamptz not null,
  primary key (xact, seq)
) with (toast_tuple_target = 8160);
create index outbox_organization on outbox (organization_id, xact, seq);
alter table outbox alter column items set statistics 0;

-- How far each reader of it has come. The row of the fan-out to webhooks is its lock: one node at a time does it.
create table outbox_cursor (
  name text primary key,
  xact xid8 not null,
  seq bigint not null,
  last_ms bigint not null
) with (fillfactor = 50);
insert into outbox_cursor values ('webhooks', '0', 0, 0);

-- A customer's endpoint. Its owner is the node that calls it: a lease with an epoch, as routes have. A deleted one stays
-- as a tombstone until its deliveries are purged.
create table webhook (
  id text primary key,
  organization_id uuid not null references organization,
  url text not null,
  event_types text[],
  description text,
  status text not null check (status in ('active', 'disabled', 'deleted')),
  sealed_secret bytea not null,
  sealed_previous_secret bytea,
  previous_until timestamptz,
  -- The first failure since the last success.
  failing_since timestamptz,
  owner bigint,
  epoch bigint not null default 0,
  lease_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 50);
create index webhook_organization on webhook (organization_id, id) where status <> 'deleted';
create index webhook_ended on webhook (id) where status <> 'active';

-- One event for one endpoint. Ids grow in the order of the fan-out, which is the order of first attempts.
-- next_attempt_at is null until there was an attempt.
create table webhook_delivery (
  id uuid primary key,
  organization_id uuid not null,
  webhook_id text not null,
  item jsonb not null,
  announced_at timestamptz not null,
  status text not null check (status in ('pending', 'succeeded', 'failed')),
  attempts integer not null default 0,
  -- Since it was announced or replayed.
  failures integer not null default 0,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz,
  request jsonb,
  response_status integer,
  response_body text,
  error text,
  created_at timestamptz not null
) with (fillfactor = 80);
create index webhook_delivery_recent on webhook_delivery (webhook_id, id);
create index webhook_delivery_first on webhook_delivery (webhook_id, id)
  where status = 'pending' and next_attempt_at is null;
create index webhook_delivery_again on webhook_delivery (webhook_id, next_attempt_at)
  where status = 'pending' and next_attempt_at is not null;
alter table webhook_delivery alter column item set statistics 0;
alter table webhook_delivery alter column request set statistics 0;
alter table webhook_delivery alter column response_body set statistics 0;

-- Addresses that are not written to any more, complaints about what was sent, and the reports that tell of both.

-- Matched by the key of `sameAddressKey`. The id gives the order of the list: newest first.
create table suppression (
  organization_id uuid not null references organization,
  address_key text not null,
  id uuid not null,
  email text not null,
  reason text not null check (reason in ('manual', 'hard_bounce', 'complaint', 'unsubscribe')),
  submission_id uuid,
  created_at timestamptz not null,
  primary key (organization_id, address_key)
);
create unique index suppression_recent on suppression (organization_id, id);

-- One for each recipient of a submission and kind of report: a report that comes again is the same complaint.
create table complaint (
  id uuid primary key,
  organization_id uuid not null references organization,
  submission_id uuid not null,
  message_id text,
  email text not null,
  address_key text not null,
  feedback_type text not null check (feedback_type in ('abuse', 'fraud', 'virus', 'not-spam', 'other')),
  user_agent text,
  reported_by text,
  arrived_at timestamptz not null,
  created_at timestamptz not null
);
create index complaint_recent on complaint (organization_id, id);
create unique index complaint_once on complaint (submission_id, address_key, feedback_type);

-- When a report is looked at again after it could not be read, or not yet. Those of which nothing proves whose they are, as
-- complaints, take turns with the organizations as those of one more.
alter table kept_mail add column failures integer not null default 0;
alter table kept_mail add column retry_at timestamptz;
alter table kept_mail add column due_at timestamptz not null generated always as (coalesce(retry_at, received_at)) stored;
alter table kept_mail add column turn uuid generated always as (
  case when purpose <> 'operator' then coalesce(organization_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') end) stored;
create index kept_mail_unread on kept_mail (turn, due_at) where turn is not null;
create index kept_mail_operator on kept_mail (received_at, id) where purpose = 'operator';

-- Messages whose attachments wait to be scanned. Whoever scans one holds an advisory lock meanwhile: claims write nothing,
-- a crash lets go of them, and no transaction that has written stays open for the minutes that a scan can take.

create table scan (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  failures integer not null default 0,
  due_at timestamptz not null
) with (fillfactor = 80);
create index scan_due on scan (due_at);
create index scan_turn on scan (organization_id, due_at);

-- Metrics: what happened is counted in the commit in which it happens, by appending: no row is hot. A job folds what was
-- appended into roll-ups; reads add both, so they are exact at any moment.

-- One kind of fact, so many times. Latency: the bucket of the time from accepted to delivered.
create type metric_count as (fact text, sender text, destination text, latency smallint, amount integer);

-- What one commit adds for one organization within one hour; `at` is the latest of its facts.
create table metric_delta (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  at timestamptz not null,
  counts metric_count[] not null
);
create index metric_delta_organization on metric_delta (organization_id);

-- Roll-ups: of everything ('total', name ''), of a domain that sends or receives mail for the organization ('own'), of a
-- domain that mail goes to ('destination'). `at` begins the second, hour or day (UTC).
create table metric (
  organization_id uuid not null,
  kind text not null check (kind in ('total', 'own', 'destination')),
  grain text not null check (grain in ('second', 'hour', 'day')),
  at timestamptz not null,
  name text not null,
  accepted integer not null,
  recipients integer not null,
  delivered integer not null,
  deferred integer not null,
  bounced integer not null,
  failed integer not null,
  cancelled integer not null,
  suppressed integer not null,
  complained integer not null,
  received integer not null,
  -- Of the total: how many deliveries fall into each latency bucket; null without any.
  latencies integer[],
  primary key (organization_id, kind, grain, at, name)
) with (fillfactor = 50);
alter table metric alter column latencies set statistics 0;
create index metric_age on metric (grain, at);

-- Content of sends that belong to no inbox.

-- What the mail of a POST /v1/send is composed from: a message has no row there. It goes once nothing of the submission
-- waits and its lifetime is over.
create table send_content (
  submission_id uuid primary key,
  organization_id uuid not null,
  -- The customer's domain that it is sent from, so that what waits of it is found when that is deleted.
  domain_id uuid not null,
  internet_message_id text not null,
  recipients jsonb not null,
  text text not null,
  html text,
  headers jsonb not null,
  created_at timestamptz not null
) with (toast_tuple_target = 8160);
-- As in message: compressing and moving 5 KB out of the row costs more than the rest of its insertion.
alter table send_content alter column text set storage external;
alter table send_content alter column html set storage external;
alter table send_content alter column text set statistics 0;
alter table send_content alter column html set statistics 0;
alter table send_content alter column recipients set statistics 0;
alter table send_content alter column headers set statistics 0;
create index send_content_domain on send_content (domain_id, submission_id);

-- Aggregate reports of DMARC: what became of mail in the name of domains that ask for them, by UTC day. They belong to no
-- organization.

-- A report that is to be sent once its day is over.
create table dmarc_report (
  day date not null,
  policy_domain text not null,
  -- As it was published last: {p, sp, np, adkim, aspf, isTesting, rua}.
  policy jsonb not null,
  -- How many rows of dmarc_evaluation it has, and messages for whose kind there was no room.
  kinds integer not null default 0,
  omitted bigint not null default 0,
  failures integer not null default 0,
  due_at timestamptz not null,
  primary key (day, policy_domain)
);
create index dmarc_report_due on dmarc_report (due_at);

-- A kind of mail, and how many there were; `digest` is that of `mail`.
create table dmarc_evaluation (
  day date not null,
  policy_domain text not null,
  digest bytea not null,
  mail jsonb not null,
  amount bigint not null,
  primary key (day, policy_domain, digest),
  foreign key (day, policy_domain) references dmarc_report on delete cascade
) with (fillfactor = 80);
alter table dmarc_evaluation alter column mail set statistics 0;

-- Full-text search over messages: one row a message, filled by a job that reads the outbox, so that accepting and filing
-- write nothing for it. What the outbox tells of waits here for its organization's turn.

-- A stretch of an inbox's messages by their ids, of about 4,096. Every word of its messages is stored behind its number, so
-- that a search looks through its own inbox alone, from the newest stretch on, and ends once a page is full.
create table search_part (
  number bigint generated always as identity primary key,
  organization_id uuid not null,
  inbox_id text not null,
  -- It holds the messages behind this id, up to the next part's.
  after_id text not null,
  -- The message number that made it begin.
  from_seq bigint not null
);
create index search_part_inbox on search_part (inbox_id, after_id, number);

create table message_search (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  inbox_id text not null,
  words tsvector not null
);
alter table message_search alter column words set statistics 0;
-- The job itself empties the pending list, between its transactions: readers of the outbox wait for each of them.
create index message_search_words on message_search using gin (words) with (gin_pending_list_limit = 65536);

-- A message that waits to be indexed, in the order of the outbox: organizations take turns, whatever one of them brings.
-- What is gone is dropped in its turn.
create table search_waiting (
  organization_id uuid not null,
  ordinal bigint generated always as identity,
  message_id text not null,
  announced_at timestamptz not null,
  primary key (organization_id, ordinal)
);

-- Up to here the outbox has been looked through for messages.
insert into outbox_cursor values ('search', '0', 0, 0);

-- What jobs do: mail to be filed, reports to be read, messages to be scanned. Organizations take turns, and nodes share it.

-- Work of every kind, and the class of the advisory locks on it: "spol", "kept", "scan". Who has asked for one kind reads the
-- table of that kind alone.
create view work as
  select 'mail' as kind, 1936748396 as lock_class, id, organization_id, due_at, failures, size_bytes from spool
  union all
  select 'report', 1801810036, id, turn, due_at, failures, size_bytes from kept_mail
  union all
  select 'scan', 1935892846, message_id, organization_id, due_at, failures, 0 from scan;
