-- Stores the content of the sends that passed and have no inbox. Such a send has no message that would hold its content.
create or replace function insert_send_contents(
  passed boolean[], orgs uuid[], in_inboxes text[], subs uuid[], domain_ids uuid[], internet_ids text[],
  visible_recipients jsonb[], bodies text[], htmls text[], header_sets jsonb[], raw_ids uuid[], times timestamptz[])
returns void
language plpgsql
as $$
begin
  insert into send_content (submission_id, organization_id, domain_id, internet_message_id, recipients, text, html, headers,
    raw_id, created_at)
  select subs[g], orgs[g], domain_ids[g], internet_ids[g], visible_recipients[g], bodies[g], htmls[g], header_sets[g],
    raw_ids[g], times[g]
  from generate_series(1, cardinality(orgs)) g where passed[g] and in_inboxes[g] is null;
end $$;
