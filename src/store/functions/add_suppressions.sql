-- Adds suppressions and announces them in the outbox; returns the new rows. Inserts in the order of the key, so that two
-- batches cannot deadlock. `added`: array of {id, org, key, email, reason, submission, note, since}. Without `since` a row
-- is created at `at`.
create or replace function add_suppressions(added jsonb, at timestamptz) returns setof suppression
language plpgsql
as $$
declare
  r suppression;
  announced jsonb := '[]';
begin
  for r in
    insert into suppression (organization_id, address_key, id, email, reason, submission_id, note, created_at)
    select distinct on (x.org, x.key) x.org, x.key, x.id, x.email, x.reason, x.submission, x.note, coalesce(x.since, at)
    from jsonb_to_recordset(added) as x(id uuid, org uuid, key text, email text, reason text, submission uuid,
      note text, since timestamptz)
    order by x.org, x.key, x.id
    on conflict (organization_id, address_key) do nothing
    returning *
  loop
    announced := announced || jsonb_build_object('org', r.organization_id, 'id', uuid_v7(at), 'type', 'suppression.created',
      'content', jsonb_build_object('suppression', jsonb_build_object('email', r.email, 'reason', r.reason,
        'submissionId', r.submission_id,
        'createdAt', to_char(r.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))));
    return next r;
  end loop;
  if announced <> '[]' then perform append_outbox(announced, at); end if;
end $$;
