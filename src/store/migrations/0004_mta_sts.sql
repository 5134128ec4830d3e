-- The MTA-STS policies of domains that mail goes to (RFC 8461), and failures to fetch them. Shared by all nodes.
create table mta_sts_policy (
  domain text primary key,
  -- The id of the record for which the policy was fetched. Null, as is `mode`, if no policy was ever fetched.
  id text,
  mode text,
  mx text[] not null default '{}',
  max_age integer,
  fetched_at timestamptz,
  expires_at timestamptz,
  -- The last failure to fetch it, until a fetch succeeds.
  failed_at timestamptz,
  failure text,
  -- The day on which mail last went to the domain.
  used_at timestamptz not null,
  -- When the policy is fetched again before it expires. Null while no mail goes to the domain.
  refresh_at timestamptz
);

create index mta_sts_policy_refresh on mta_sts_policy (refresh_at) where refresh_at is not null;
create index mta_sts_policy_use on mta_sts_policy (used_at);
