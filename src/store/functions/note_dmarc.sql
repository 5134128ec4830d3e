-- Counts evaluated mail for reports: one element a report, and one a kind of mail (`of_reports`: the ordinal of its report, from
-- 1). Strangers choose the domains and the kinds, so a day has at most `most_reports` and `most_kinds` of them, and a report
-- at most `most_of_report`: what is beyond the last two is counted as omitted, and what is beyond the first is not counted.
create or replace function note_dmarc(
  days date[], domains text[], policies jsonb[], dues timestamptz[], of_reports integer[], digests bytea[], mails jsonb[],
  amounts integer[], most_reports integer, most_kinds integer, most_of_report integer)
returns void
language plpgsql
as $$
begin
  -- One node at a time: the bounds hold, and nobody waits for a row that the other one has.
  perform pg_advisory_xact_lock(1684894307, 0); -- "dmrc"
  insert into dmarc_report (day, policy_domain, policy, due_at)
  select n.day, n.domain, n.policy, n.due
  from (
    select days[g] as day, domains[g] as domain, policies[g] as policy, dues[g] as due,
      r.day is not null as is_known,
      row_number() over (partition by days[g], r.day is null order by g)
        + (select count(*) from dmarc_report d where d.day = days[g]) as ordinal
    from generate_series(1, cardinality(days)) g
    left join dmarc_report r on r.day = days[g] and r.policy_domain = domains[g]
  ) n
  where n.is_known or n.ordinal <= most_reports
  on conflict (day, policy_domain) do update set policy = excluded.policy;

  with given as materialized (
    select g, r.day, r.policy_domain, r.kinds, digests[g] as digest, mails[g] as mail, amounts[g] as amount,
      exists (select from dmarc_evaluation e
        where e.day = r.day and e.policy_domain = r.policy_domain and e.digest = digests[g]) as is_known
    from generate_series(1, cardinality(digests)) g
    join dmarc_report r on r.day = days[of_reports[g]] and r.policy_domain = domains[of_reports[g]]
  ), of_day as materialized (
    select d.day, sum(d.kinds) as kinds from dmarc_report d where d.day = any(days) group by d.day
  ), counted as (
    update dmarc_evaluation e set amount = e.amount + n.amount from given n
    where n.is_known and e.day = n.day and e.policy_domain = n.policy_domain and e.digest = n.digest
  ), judged as materialized (
    select n.*, n.kinds + row_number() over (partition by n.day, n.policy_domain order by n.g) <= most_of_report
      and o.kinds + row_number() over (partition by n.day order by n.g) <= most_kinds as has_room
    from given n join of_day o on o.day = n.day where not n.is_known
  ), added as (
    insert into dmarc_evaluation (day, policy_domain, digest, mail, amount)
    select day, policy_domain, digest, mail, amount from judged where has_room
  )
  update dmarc_report r set kinds = r.kinds + n.added, omitted = r.omitted + n.omitted
  from (
    select day, policy_domain, count(*) filter (where has_room) as added,
      coalesce(sum(amount) filter (where not has_room), 0) as omitted
    from judged group by day, policy_domain
  ) n
  where r.day = n.day and r.policy_domain = n.policy_domain;
end $$;
