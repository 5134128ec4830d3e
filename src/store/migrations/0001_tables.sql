-- The tables. Each one that belongs to an organization carries organization_id, so that a cell can be split later.

-- Organizations, and the counters behind their limits.

create table organization (
  id uuid primary key,
  name text not null,
  -- A deleted one stays as a tombstone without a name, for those of its addresses.
  status text not null check (status in ('pending', 'active', 'suspended', 'deleting', 'deleted')),
  limits jsonb not null,
  managed_used integer not null default 0,
  -- Whether its members may make server keys. The operator grants it.
  server_keys boolean not null default false,
  -- The letter about the organization that is due: to the operator about a request, or to its owners about the approval.
  letter_due text check (letter_due in ('request', 'approval')),
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index organization_letter_due on organization (letter_due) where letter_due is not null;

-- The counters of an organization's volume limits, one row each. decide_sends locks the rows in organization order.
create table usage (
  organization_id uuid primary key references organization,
  minute_started_at timestamptz not null default '-infinity',
  minute_messages integer not null default 0,
  day date not null default '-infinity',
  day_messages integer not null default 0,
  day_recipients integer not null default 0
) with (fillfactor = 50);

-- Mail received for an organization: on a UTC day, and kept now. A table of its own, so that receiving and accepting for one
-- organization do not wait for each other. receive_mails locks the rows in organization order.
create table received_usage (
  organization_id uuid primary key references organization on delete cascade,
  day date not null default '-infinity',
  messages bigint not null default 0,
  bytes bigint not null default 0,
  -- Bytes of received mail that it keeps: the sizes of its spool rows and of the raw rows of its received messages, each
  -- counted once for each inbox. The rows of `stored_delta` are not subtracted yet.
  stored_bytes bigint not null default 0
) with (fillfactor = 50);

-- Bytes that one commit deleted. A row of its own, because a delete that updated `received_usage` would hold up receiving.
create table stored_delta (
  organization_id uuid not null,
  id bigint generated always as identity,
  bytes bigint not null,
  primary key (organization_id, id)
);

-- People: who signs in to the dashboard, what they may do for which organization, and what they did. API keys are here too,
-- because each member has one.

create table person (
  id uuid primary key,
  -- As it is compared: lower case, the domain in ASCII.
  email text not null unique,
  name text not null,
  -- PHC string of argon2id; null: signs in by a passkey, an identity provider or a link.
  password_hash text,
  -- Null until the address has been proved.
  confirmed_at timestamptz,
  -- When a mailed link last proved the address again, after it was confirmed.
  proved_at timestamptz,
  -- What an identity provider calls the person.
  oidc_issuer text,
  oidc_subject text,
  oidc_linked_at timestamptz,
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

create table api_key (
  id uuid primary key,
  organization_id uuid not null references organization,
  -- The member whose key it is: requests of their sessions are judged and counted by it, and its secret exists nowhere.
  person_id uuid references person,
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
  -- The member who made the key. Null: the operator, or a person whose account is gone.
  made_by uuid references person on delete set null,
  created_at timestamptz not null,
  revoked_at timestamptz
);
create index api_key_organization on api_key (organization_id, id);
create index api_key_made_by on api_key (made_by) where made_by is not null;

-- Requests of a key's running minute that nodes have borrowed. The last of them may exceed what the key may make.
create table request_window (
  key_id uuid not null references api_key on delete cascade,
  started_at timestamptz not null,
  granted integer not null,
  primary key (key_id, started_at)
) with (fillfactor = 50);

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

-- By the digest of its token. A session without a person is the operator's, on the operator's own listener.
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

-- A link that was mailed or printed, by the digest of its secret. It is used once.
create table person_token (
  token_hash bytea primary key,
  purpose text not null check (purpose in ('confirm', 'reset', 'sign_in', 'operator')),
  person_id uuid references person on delete cascade,
  -- A link to a new password names no person: it is for whoever has the address once it is used.
  email text,
  -- The link of a sign-up confirms these: several sign-ups may be pending for one address.
  name text,
  password_hash text,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index person_token_person on person_token (person_id);
create index person_token_email on person_token (email) where email is not null;

-- Failed sign-ins of an account or a network, both by a keyed digest.
create table sign_in_failure (
  subject bytea primary key,
  failures integer not null,
  blocked_until timestamptz not null,
  last_at timestamptz not null
);

-- Networks from which an account has signed in, both in one keyed digest.
create table known_network (
  subject bytea primary key,
  last_at timestamptz not null
);
create index known_network_last on known_network (last_at);

-- Letters of the service that were sent within a window of time, by a keyed digest of whom they count against.
create table letter_count (
  subject bytea primary key,
  letters integer not null,
  ends_at timestamptz not null
);
create index letter_count_ends on letter_count (ends_at);

-- Who did what, when, from where. The person and the subject may be gone.
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

-- Mailboxes: inboxes, threads, messages, and the bytes of mail.

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
-- A former owner of a domain may still have inboxes on it. The present owner may open the same addresses.
create unique index inbox_address on inbox (domain, local_part, domain_id) nulls not distinct where status = 'active';
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

-- Bytes as they came or went: the message of a received envelope, shared by its recipients, or an outbound attachment.
-- Up to 256 KiB are in the row, more in a blob.
create table raw (
  id uuid primary key,
  size_bytes integer not null,
  bytes bytea,
  blob text,
  created_at timestamptz not null,
  check ((bytes is null) <> (blob is null))
) with (toast_tuple_target = 8160);
alter table raw alter column bytes set storage external;
create index raw_blob on raw (id) where blob is not null;

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
  -- Null if it is the text without the white space around it.
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
  -- Sent: further header fields; null if there are none.
  headers jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Bytes that it adds to an answer: those of its texts and values, and 1,000 for the rest. Received mail has its new text
  -- apart, so a text that `extracted_text` repeats counts twice. JSON has at most six times as many. An id of `reference_ids`
  -- has at most 998 characters, 3,000 bytes of JSON, so it weighs 500: `reference_ids::text` is not immutable.
  weight_bytes integer not null generated always as (
    1000
    + octet_length(text) * case when direction = 'inbound' and extracted_text is null then 2 else 1 end
    + coalesce(octet_length(html), 0) + coalesce(octet_length(extracted_text), 0)
    + octet_length(internet_message_id) + coalesce(octet_length(in_reply_to), 0) + 500 * cardinality(reference_ids)
    + octet_length(sender::text) + octet_length(recipients::text) + octet_length(subject) + octet_length(metadata::text)
    + octet_length(attachments::text) + coalesce(octet_length(security::text), 0)) stored
) with (toast_tuple_target = 8160);
-- Kept as they came: compressing and moving 5 KB out of the row costs more than the rest of its insertion.
alter table message alter column text set storage external;
alter table message alter column html set storage external;
alter table message alter column extracted_text set storage external;
-- The order of filing, of one direction, or of both, merged. A reader that waits for answers skips no sent mail.
create unique index message_filing on message (inbox_id, direction, seq);
-- One index for all lists of an inbox: of one direction, or of both, merged.
create index message_direction on message (inbox_id, direction, id);
-- An inbox sends from itself, so only senders of received mail are looked up. An address may be longer than an index entry.
create index message_sender on message (inbox_id, left(lower(sender->>'email'), 400), id) where direction = 'inbound';
create index message_thread on message (thread_id, seq);
create index message_internet_id on message (inbox_id, internet_message_id);
create index message_raw on message (raw_id) where raw_id is not null;

-- The number of a deleted message in its inbox's order of filing, so that a client that read it last can continue after it.
create table message_tombstone (
  message_id text primary key,
  organization_id uuid not null,
  inbox_id text not null,
  seq bigint not null,
  deleted_at timestamptz not null
);
create index message_tombstone_inbox on message_tombstone (inbox_id);
create index message_tombstone_age on message_tombstone (deleted_at);

-- Sending: submissions, their deliveries and events, and the queues that deliveries wait in.

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
-- For lists of one status, or of all four, merged: a list without a status would be one more index for each acceptance.
create index submission_status on submission (organization_id, status, id);
create index submission_inbox on submission (inbox_id, status, id) where inbox_id is not null;

-- The content of a POST /v1/send, which belongs to no inbox and so has no row of message. It goes once nothing of the
-- submission waits and its lifetime is over.
create table send_content (
  submission_id uuid primary key,
  organization_id uuid not null,
  -- The customer's domain that it is sent from, by which waiting mail is found when the domain is deleted.
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
create index send_content_domain on send_content (domain_id, submission_id);

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
  -- The attempts that a lasting fault of ours ended before the message was written.
  own_faults integer not null default 0,
  queued_at timestamptz,
  due_at timestamptz not null,
  expires_at timestamptz not null,
  claim_epoch bigint,
  -- When a node of ours stored the mail: a later attempt is answered 250 and stores nothing. Null: not stored here.
  kept_at timestamptz,
  response text,
  failure_code text,
  updated_at timestamptz not null,
  primary key (submission_id, position)
) with (fillfactor = 70);
-- By status, because a search for first attempts must not read over all that wait for another attempt, nor the reverse.
create index delivery_waiting on delivery (route, status, organization_id, due_at)
  where claim_epoch is null and status in ('pending', 'deferred');
create index delivery_expiring on delivery (expires_at) where claim_epoch is null and status in ('pending', 'deferred');
create index delivery_claimed on delivery (route, claim_epoch) where claim_epoch is not null;
create index delivery_address on delivery (organization_id, address_key, submission_id);

-- Facts that customers are told. Sequence 0, accepted, is the submission itself. A recipient's attempt is one row: its outcome,
-- which takes a sequence number for each event that it tells and is stored under the last.
create table event (
  submission_id uuid not null,
  seq integer not null,
  id uuid not null,
  organization_id uuid not null,
  type text not null,
  recipient text,
  at timestamptz not null,
  attempt integer,
  -- When the recipient of an attempt was queued, at the first attempt, and when the attempt began: the events "queued" and
  -- "attempted".
  queued_at timestamptz,
  began_at timestamptz,
  remote jsonb,
  response text,
  enhanced_status text,
  classification text,
  -- The SMTP dialog, in at most 2 KiB. Array of [command, ms since the attempt began, code, enhanced status, text].
  conversation json,
  primary key (submission_id, seq)
);

-- A row of event to come, of one recipient of a submission.
create type recipient_fact as (submission uuid, "position" integer, id uuid, type text, recipient text, at timestamptz,
  attempt integer, remote jsonb, response text, enhanced text, classification text, queued_at timestamptz,
  began_at timestamptz, conversation json);

-- Dropped by 0002.
create type fact as (submission uuid, "position" integer, step integer, id uuid, type text, recipient text, at timestamptz,
  attempt integer, remote jsonb, response text, enhanced text, classification text);

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

-- Matched by the key of `sameAddressKey`. The id gives the order of the list: newest first.
create table suppression (
  organization_id uuid not null references organization,
  address_key text not null,
  id uuid not null,
  email text not null,
  reason text not null check (reason in ('manual', 'hard_bounce', 'complaint', 'unsubscribe')),
  -- Why a former service suppressed the address, in its words, if the imported list had any.
  note text check (length(note) <= 200),
  submission_id uuid,
  created_at timestamptz not null,
  primary key (organization_id, address_key)
);
create unique index suppression_recent on suppression (organization_id, id);

-- One for each recipient of a submission and kind of report: a repeated report is the same complaint. No query asks for a
-- complaint by its id alone, so the list of an organization is the key.
create table complaint (
  organization_id uuid not null references organization,
  id uuid not null,
  submission_id uuid not null,
  message_id text,
  email text not null,
  address_key text not null,
  feedback_type text not null check (feedback_type in ('abuse', 'fraud', 'virus', 'not-spam', 'other')),
  user_agent text,
  reported_by text,
  arrived_at timestamptz not null,
  created_at timestamptz not null,
  primary key (organization_id, id)
);
create unique index complaint_once on complaint (submission_id, address_key, feedback_type);

-- Receiving: mail to be filed, reports to be read, messages to be scanned. Organizations take turns, and nodes share the work.
-- In these three tables claimed_by is the number of the node that works on the row, or null, and claimed_until is the end of its
-- claim. Pages have room and no index has these columns, so that a claim is an update in place.

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
  due_at timestamptz not null,
  claimed_by integer,
  claimed_until timestamptz
) with (fillfactor = 50);
create index spool_turn on spool (organization_id, due_at);
create index spool_raw on spool (raw_id);

-- Mail to the addresses that the service itself needs: postmaster, abuse, fbl and the return paths.
create table kept_mail (
  id text primary key,
  purpose text not null check (purpose in ('operator', 'feedback', 'return_path')),
  address text not null,
  -- Whose mail is reported, if the return path says it.
  organization_id uuid,
  -- The network that the mail came from, a /24 or /48: each has a share of what is kept. Null: trusted peers have none.
  network text,
  raw_id uuid not null,
  size_bytes integer not null,
  envelope jsonb not null,
  received_at timestamptz not null,
  -- When an operator first read it. Reports, which the service reads, have none.
  read_at timestamptz,
  failures integer not null default 0,
  -- When a report is read again that could not be read, or not yet.
  retry_at timestamptz,
  due_at timestamptz not null generated always as (coalesce(retry_at, received_at)) stored,
  -- Reports take turns by organization. Those of unproved origin, such as complaints, are the turn of one more.
  turn uuid generated always as (
    case when purpose <> 'operator' then coalesce(organization_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff') end) stored,
  claimed_by integer,
  claimed_until timestamptz
) with (fillfactor = 50);
create index kept_mail_raw on kept_mail (raw_id);
create index kept_mail_share on kept_mail (purpose, network) include (size_bytes, failures) where read_at is null;
create index kept_mail_unread on kept_mail (turn, due_at) where turn is not null;
create index kept_mail_operator on kept_mail (received_at, id) where purpose = 'operator';

-- Messages whose attachments wait to be scanned. No transaction that has written stays open for the minutes that a scan can take.
create table scan (
  message_id text primary key references message on delete cascade,
  organization_id uuid not null,
  failures integer not null default 0,
  due_at timestamptz not null,
  claimed_by integer,
  claimed_until timestamptz
) with (fillfactor = 50);
create index scan_turn on scan (organization_id, due_at);

-- Work of every kind. A query for one kind reads the table of that kind alone. Nothing reads `lock_class`.
create view work as
  select 'mail' as kind, 1936748396 as lock_class, id, organization_id, due_at, failures, size_bytes, claimed_by, claimed_until
    from spool
  union all
  select 'report', 1801810036, id, turn, due_at, failures, size_bytes, claimed_by, claimed_until from kept_mail
  union all
  select 'scan', 1935892846, message_id, organization_id, due_at, failures, 0, claimed_by, claimed_until from scan;

-- Mail that the embedded capture server took, in development.
create table captured_mail (
  id uuid primary key,
  sender text not null,
  recipients text[] not null,
  raw_id uuid not null,
  captured_at timestamptz not null
);
create index captured_mail_raw on captured_mail (raw_id);

-- Domains: customers' claims on names and what DNS showed of them, keys that sign, certificates, reports of DMARC.

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

-- Signing keys, sealed by the secret key. Those of a customer's domain go with it; the deployment's own have neither
-- organization_id nor domain_id.
create table dkim_key (
  domain text not null,
  selector text not null,
  organization_id uuid,
  domain_id uuid references domain on delete cascade,
  algorithm text not null check (algorithm in ('rsa-sha256', 'ed25519-sha256')),
  sealed_key bytea not null,
  public_record text not null,
  -- Pending keys have not been seen in DNS and do not sign. Retired ones were replaced and stay listed for a while.
  state text not null default 'active' check (state in ('pending', 'active', 'retired')),
  retired_at timestamptz,
  created_at timestamptz not null,
  primary key (domain, selector)
);
create index dkim_key_domain on dkim_key (domain_id) where domain_id is not null;
create index dkim_key_retired on dkim_key (retired_at) where retired_at is not null;

-- Certificates from an authority that speaks ACME. Nodes share one account and one certificate, and any of them answers for it.

-- An account, under the URL of the authority's directory, with its certificate and the state of its orders.
create table acme_account (
  directory text primary key,
  sealed_key bytea not null,
  -- PEM, the certificate itself first; null before there is one, and once it was revoked. The key is sealed.
  chain text,
  sealed_certificate_key bytea,
  names text[] not null default '{}',
  issued_at timestamptz,
  expires_at timestamptz,
  -- Orders that failed one after the other, when the next one may be made, and why the last one failed.
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

-- Aggregate reports of DMARC: what became of mail in the name of domains that ask for them, by UTC day. They belong to no
-- organization.

-- A report that is due once its day is over.
create table dmarc_report (
  day date not null,
  policy_domain text not null,
  -- Whose shares of a day's reports it takes: the registered domain's, and that of the network of the mail that began it. A
  -- trusted peer has no network.
  registered_domain text,
  network text,
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

-- Publishing: the outbox, one appended row an organization and commit, and the calls of webhooks. Ids made of time commit out of
-- order, so the order is that of transactions: readers keep to rows whose transaction is older than all that still run, and
-- never miss one behind their cursor.

create table outbox (
  xact xid8 not null default pg_current_xact_id(),
  seq bigint generated by default as identity,
  organization_id uuid not null,
  -- Array of {id, type, …}: a reference to its subject (submission and event, message, …), or carries its `content`.
  items jsonb not null,
  created_at timestamptz not null,
  primary key (xact, seq)
) with (toast_tuple_target = 8160);
create index outbox_organization on outbox (organization_id, xact, seq);

-- How far each reader of the outbox has come. The row of the fan-out to webhooks is its lock: one node at a time does it.
create table outbox_cursor (
  name text primary key,
  xact xid8 not null,
  seq bigint not null,
  last_ms bigint not null
) with (fillfactor = 50);
insert into outbox_cursor values ('webhooks', '0', 0, 0), ('search', '0', 0, 0);

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
  -- The member who made it, as in api_key.
  made_by uuid references person on delete set null,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 50);
create index webhook_organization on webhook (organization_id, id) where status <> 'deleted';
create index webhook_ended on webhook (id) where status <> 'active';
create index webhook_made_by on webhook (made_by) where made_by is not null;

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

-- Metrics are counted in the commit of the fact, by appending: no row is hot. A job folds appended rows into roll-ups. Reads add
-- both, so they are exact at any moment.

-- One kind of fact, and how often it happened. Latency: the bucket of the time from accepted to delivered.
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
create index metric_age on metric (grain, at);

-- Full-text search over messages: one row a message, filled by a job that reads the outbox, so that accepting and filing
-- write nothing for it. Messages wait here for their organization's turn.

-- The inboxes that are searched. Words are stored of their messages alone. An inbox is added at its first search, and goes with
-- its words when it has not been searched for long.
create table searched_inbox (
  inbox_id text primary key,
  organization_id uuid not null,
  -- At its first search: the number of its newest message, and its greatest id. Later messages come out of the outbox, except
  -- those that were received long before they were filed: these may come with the older ones.
  until_seq bigint not null,
  newest_id text not null,
  -- Some of the messages before this id are not indexed yet; null: the inbox is complete.
  before_id text,
  used_at timestamptz not null,
  -- Its words are being removed: those of messages up to this id are gone.
  removed_to text
);
create index searched_inbox_organization on searched_inbox (organization_id, inbox_id);
create index searched_inbox_unfinished on searched_inbox (organization_id, inbox_id) where before_id is not null;
create index searched_inbox_used on searched_inbox (used_at);
create index searched_inbox_removed on searched_inbox (inbox_id) where removed_to is not null;

-- A stretch of an inbox's messages by their ids, of about 4,096. Every word of its messages is stored behind its number, so
-- that a search reads its own inbox alone, from the newest stretch on, and ends once a page is full.
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
-- The job itself empties the pending list, between its transactions: readers of the outbox wait for each of them.
create index message_search_words on message_search using gin (words) with (gin_pending_list_limit = 65536);

-- A message that waits to be indexed, in the order of the outbox. Organizations take turns, however much one of them brings. A
-- message that is gone is dropped in its turn.
create table search_waiting (
  organization_id uuid not null,
  ordinal bigint generated always as identity,
  message_id text not null,
  announced_at timestamptz not null,
  primary key (organization_id, ordinal)
);

-- The database and its nodes.

-- One row. A backup has it, and a blob folder is marked with the id, so that no service of another database takes its files for
-- files without an owner.
create table database_identity (
  id uuid primary key,
  secret_key_check bytea,
  -- Dropped by 0002.
  next_key_check bytea,
  -- A blob folder is marked once: later a folder without the mark is a mount point without its disk, and stays unmarked.
  has_blob_folder boolean not null default false
);
insert into database_identity (id) values (gen_random_uuid());

create table former_secret_key (
  key_check bytea primary key,
  -- Derived keys that know the return paths and cursors made under it, sealed under the present one. Null once all of those
  -- have expired, and of a key that was lost.
  sealed_verifiers bytea,
  replaced_at timestamptz not null,
  -- Null: something may still be sealed with it.
  ended_at timestamptz
);

-- One row if the database came from a backup. The restore writes it. Nothing leaves such a copy until it is released.
create table restoration (
  only_row boolean primary key default true check (only_row),
  backup_id uuid not null,
  -- The moment that the backup shows.
  taken_at timestamptz not null,
  restored_at timestamptz not null,
  released_at timestamptz
);

-- Nodes that are up hold an advisory lock under their id, so that a dead one is seen at once.
create sequence node_id;
create table node (
  id bigint primary key,
  smtp_address text,
  capture_address text,
  -- Its mark in the blob folder: the number of its data folder, and a word.
  mark_folder bigint,
  mark_word text,
  -- What operators see of it: its release, its roles, the address of its operator listener, and the name of its machine.
  version text,
  roles text[],
  operator_address text,
  host text,
  -- The settings that all nodes must share, by name: a node with another value loses, refuses or keeps mail that the others
  -- would not.
  agreed jsonb,
  -- The next three are dropped by 0002.
  managed_domain text,
  mail_host text,
  key_checks bytea[],
  started_at timestamptz not null,
  -- When it last said that it lives. A node that hangs holds its lock, and this moment passes. Null: it has not said so yet.
  seen_at timestamptz
);

-- No query compares these; sampling wide values costs more than the rest of an analysis.
alter table dmarc_evaluation alter column mail set statistics 0;
alter table event alter column conversation set statistics 0;
alter table message alter column text set statistics 0;
alter table message alter column html set statistics 0;
alter table message alter column extracted_text set statistics 0;
alter table message alter column sender set statistics 0;
alter table message alter column recipients set statistics 0;
alter table message alter column reference_ids set statistics 0;
alter table message alter column attachments set statistics 0;
alter table message alter column security set statistics 0;
alter table message alter column headers set statistics 0;
alter table message_search alter column words set statistics 0;
alter table metric alter column latencies set statistics 0;
alter table outbox alter column items set statistics 0;
alter table raw alter column bytes set statistics 0;
alter table send_content alter column text set statistics 0;
alter table send_content alter column html set statistics 0;
alter table send_content alter column recipients set statistics 0;
alter table send_content alter column headers set statistics 0;
alter table spool alter column envelope set statistics 0;
alter table submission alter column sender set statistics 0;
alter table thread alter column participants set statistics 0;
alter table webhook_delivery alter column item set statistics 0;
alter table webhook_delivery alter column request set statistics 0;
alter table webhook_delivery alter column response_body set statistics 0;
