-- Counts sessions for reports about TLS. `days` to `dues` have one element per report. `of_reports` to `amounts` have one
-- per kind of session; `of_reports` has the ordinal of its report, from 1. A day has up to `most_reports` reports, up to
-- `most_reports_of_domain` of them of one registered domain, and `most_kinds` kinds; a report up to `most_of_report`
-- kinds. Sessions of a kind without room count in `omitted`. Those of a report without room are not counted.
create or replace function note_tls(
  days date[], domains text[], registered_domains text[], dues timestamptz[],
  of_reports integer[], digests bytea[], results jsonb[], amounts integer[],
  most_reports integer, most_reports_of_domain integer, most_kinds integer, most_of_report integer)
returns void
language plpgsql
as $$
begin
  -- One node at a time, so that the bounds hold and no node waits for another's rows.
  perform pg_advisory_xact_lock(1953264498, 0); -- "tlsr"
  with given as materialized (
    select g, days[g] as day, domains[g] as domain, registered_domains[g] as registered,
      exists (select from tls_report r where r.day = days[g] and r.policy_domain = domains[g]) as is_known
    from generate_series(1, cardinality(days)) g
  ), of_day as materialized (
    select r.day, count(*) as reports from tls_report r where r.day = any(days) group by 1
  ), of_domain as materialized (
    select r.day, r.registered_domain as registered, count(*) as reports
    from tls_report r where r.day = any(days) and r.registered_domain = any(registered_domains) group by 1, 2
  ), within_shares as materialized (
    select n.* from (
      select n.*, row_number() over (partition by n.day, n.registered order by n.g) + coalesce(d.reports, 0) as of_domain
      from given n left join of_domain d on d.day = n.day and d.registered = n.registered
      where not n.is_known
    ) n
    where n.of_domain <= most_reports_of_domain
  ), begun as (
    select n.g, row_number() over (partition by n.day order by n.g) + coalesce(d.reports, 0) as ordinal
    from within_shares n left join of_day d on d.day = n.day
  )
  insert into tls_report (day, policy_domain, registered_domain, due_at)
  select days[g], domains[g], registered_domains[g], dues[g] from begun where ordinal <= most_reports
  on conflict (day, policy_domain) do nothing;

  with given as materialized (
    select g, r.day, r.policy_domain, r.kinds, digests[g] as digest, results[g] as result, amounts[g] as amount,
      exists (select from tls_session s
        where s.day = r.day and s.policy_domain = r.policy_domain and s.digest = digests[g]) as is_known
    from generate_series(1, cardinality(digests)) g
    join tls_report r on r.day = days[of_reports[g]] and r.policy_domain = domains[of_reports[g]]
  ), of_day as materialized (
    select d.day, sum(d.kinds) as kinds from tls_report d where d.day = any(days) group by d.day
  ), counted as (
    update tls_session s set amount = s.amount + n.amount from given n
    where n.is_known and s.day = n.day and s.policy_domain = n.policy_domain and s.digest = n.digest
  ), compared as materialized (
    select n.*, n.kinds + row_number() over (partition by n.day, n.policy_domain order by n.g) <= most_of_report
      and o.kinds + row_number() over (partition by n.day order by n.g) <= most_kinds as has_room
    from given n join of_day o on o.day = n.day where not n.is_known
  ), added as (
    insert into tls_session (day, policy_domain, digest, result, amount)
    select day, policy_domain, digest, result, amount from compared where has_room
  )
  update tls_report r set kinds = r.kinds + n.added, omitted = r.omitted + n.omitted
  from (
    select day, policy_domain, count(*) filter (where has_room) as added,
      coalesce(sum(amount) filter (where not has_room), 0) as omitted
    from compared group by day, policy_domain
  ) n
  where r.day = n.day and r.policy_domain = n.policy_domain;
end $$;
