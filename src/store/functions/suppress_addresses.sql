-- Suppresses the recipients of `facts`, each in its organization; returns how many are new.
-- `facts`: array of {id (the suppression's), submission, position, reason}.
create or replace function suppress_addresses(facts jsonb, at timestamptz) returns integer
language plpgsql
as $$
declare
  added jsonb;
begin
  select jsonb_agg(jsonb_build_object('id', f.id, 'org', d.organization_id, 'key', d.address_key, 'email', d.email,
    'reason', f.reason, 'submission', d.submission_id))
  into added
  from jsonb_to_recordset(facts) as f(id uuid, submission uuid, position integer, reason text)
  join delivery d on d.submission_id = f.submission and d.position = f.position;
  if added is null then return 0; end if;
  return (select count(*) from add_suppressions(added, at));
end $$;
