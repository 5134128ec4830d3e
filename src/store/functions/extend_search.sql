-- Runs when an inbox's oldest part is fully indexed: begins a part for the `wanted` messages before it. If there are none,
-- notes that all are indexed.
create or replace function extend_search(inbox text, wanted integer) returns void
language plpgsql
as $$
declare
  k searched_inbox;
  oldest text;
begin
  -- The purge of an inbox deletes this row before the inbox's parts, so it waits for this lock.
  select * into k from searched_inbox s
    where s.inbox_id = inbox and s.before_id is not null and s.removed_to is null for update;
  if not found then return; end if;
  select p.after_id into oldest from search_part p where p.inbox_id = inbox order by p.after_id, p.number limit 1;
  if oldest = '' then
    update searched_inbox s set before_id = null where s.inbox_id = inbox;
  else
    insert into search_part (organization_id, inbox_id, after_id, from_seq)
    values (k.organization_id, inbox, older_id(inbox, coalesce(oldest, k.newest_id), wanted), 0);
  end if;
end $$;
