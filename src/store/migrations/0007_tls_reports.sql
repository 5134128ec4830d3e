-- Reports about TLS to the domains that mail goes to (RFC 8460).

create table tls_report (
  day date not null,
  policy_domain text not null,
  -- The registered domain, which has a share of a day's reports.
  registered_domain text not null,
  -- How many rows of tls_session it has, and sessions for whose kind there was no room.
  kinds integer not null default 0,
  omitted bigint not null default 0,
  failures integer not null default 0,
  due_at timestamptz not null,
  primary key (day, policy_domain)
);
create index tls_report_due on tls_report (due_at);

-- A kind of session, {policy, failure}, and how many there were; `digest` is that of `result`.
create table tls_session (
  day date not null,
  policy_domain text not null,
  digest bytea not null,
  result jsonb not null,
  amount bigint not null,
  primary key (day, policy_domain, digest),
  foreign key (day, policy_domain) references tls_report on delete cascade
) with (fillfactor = 80);
