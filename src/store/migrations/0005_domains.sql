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
