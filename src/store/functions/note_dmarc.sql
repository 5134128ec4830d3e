-- Counts evaluated mail for reports. `days` to `dues` have one element per report. `of_reports` to `amounts` have one per
-- kind of mail; `of_reports` has the ordinal of its report, from 1. Strangers choose the domains and kinds, so their
-- numbers are bounded. A day has up to `most_reports` reports and `most_kinds` kinds, a report up to `most_of_report`
-- kinds. Mail from one network may begin up to `most_reports_of_network` reports a day, with up to `most_kinds_of_network`
-- kinds. A null in `networks` is not bounded. A registered domain has up to `most_reports_of_domain` reports a day. The
-- mail of a kind without room counts in `omitted`. Mail of a report without room is not counted.
create or replace function note_dmarc(
  days date[], domains text[], registered_domains text[], networks text[], policies jsonb[], dues timestamptz[],
  of_reports integer[], digests bytea[], mails jsonb[], amounts integer[],
  most_reports integer, most_reports_of_network integer, most_reports_of_domain integer,
  most_kinds integer, most_kinds_of_network integer, most_of_report integer)
returns void
language plpgsql
as $$
begin
  -- One node at a time, so that the bounds hold and no node waits for another's rows.
  perform pg_advisory_xact_lock(1684894307, 0); -- "dmrc"
  with given as materialized (
    select g, days[g] as day, domains[g] as domain, registered_domains[g] as registered, networks[g] as network,
      exists (select from dmarc_report r where r.day = days[g] and r.policy_domain = domains[g]) as is_known
    from generate_series(1, cardinality(days)) g
  ), of_day as materialized (
    select r.day, count(*) as reports from dmarc_report r where r.day = any(days) group by 1
  ), of_network as materialized (
    select r.day, r.network, count(*) as reports from dmarc_report r where r.day = any(days) and r.network is not null group by 1, 2
  ), of_domain as materialized (
    select r.day, r.registered_domain as registered, count(*) as reports
    from dmarc_report r where r.day = any(days) and r.registered_domain = any(registered_domains) group by 1, 2
  ), within_shares as materialized (
    select n.* from (
      select n.*,
        row_number() over (partition by n.day, n.network order by n.g) + coalesce(w.reports, 0) as of_network,
        row_number() over (partition by n.day, n.registered order by n.g) + coalesce(d.reports, 0) as of_domain
      from given n
      left join of_network w on w.day = n.day and w.network = n.network
      left join of_domain d on d.day = n.day and d.registered = n.registered
      where not n.is_known
    ) n
    where (n.network is null or n.of_network <= most_reports_of_network) and n.of_domain <= most_reports_of_domain
  ), begun as (
    select n.g, row_number() over (partition by n.day order by n.g) + coalesce(d.reports, 0) as ordinal
    from within_shares n left join of_day d on d.day = n.day
  )
  insert into dmarc_report (day, policy_domain, registered_domain, network, policy, due_at)
  select days[n.g], domains[n.g], registered_domains[n.g], networks[n.g], policies[n.g], dues[n.g]
  from (select g from given where is_known union all select g from begun where ordinal <= most_reports) n
  on conflict (day, policy_domain) do update set policy = excluded.policy;

  with given as materialized (
    select g, r.day, r.policy_domain, r.network, r.kinds, digests[g] as digest, mails[g] as mail, amounts[g] as amount,
      exists (select from dmarc_evaluation e
        where e.day = r.day and e.policy_domain = r.policy_domain and e.digest = digests[g]) as is_known
    from generate_series(1, cardinality(digests)) g
    join dmarc_report r on r.day = days[of_reports[g]] and r.policy_domain = domains[of_reports[g]]
  ), of_day as materialized (
    select d.day, sum(d.kinds) as kinds from dmarc_report d where d.day = any(days) group by d.day
  ), of_network as materialized (
    select d.day, d.network, sum(d.kinds) as kinds from dmarc_report d where d.day = any(days) and d.network is not null group by 1, 2
  ), counted as (
    update dmarc_evaluation e set amount = e.amount + n.amount from given n
    where n.is_known and e.day = n.day and e.policy_domain = n.policy_domain and e.digest = n.digest
  ), compared as materialized (
    select n.*, n.kinds + row_number() over (partition by n.day, n.policy_domain order by n.g) <= most_of_report
      and o.kinds + row_number() over (partition by n.day order by n.g) <= most_kinds
      and (n.network is null
        or w.kinds + row_number() over (partition by n.day, n.network order by n.g) <= most_kinds_of_network) as has_room
    from given n join of_day o on o.day = n.day
    left join of_network w on w.day = n.day and w.network = n.network where not n.is_known
  ), added as (
    insert into dmarc_evaluation (day, policy_domain, digest, mail, amount)
    select day, policy_domain, digest, mail, amount from compared where has_room
  )
  update dmarc_report r set kinds = r.kinds + n.added, omitted = r.omitted + n.omitted
  from (
    select day, policy_domain, count(*) filter (where has_room) as added,
      coalesce(sum(amount) filter (where not has_room), 0) as omitted
    from compared group by day, policy_domain
  ) n
  where r.day = n.day and r.policy_domain = n.policy_domain;
end $$;
