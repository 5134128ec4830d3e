-- Starts to index an inbox. Writes no words yet. Later messages come from the outbox. Existing messages come from
-- `find_older`, the newest `newest` of them in a part of their own. Changes nothing if the inbox is already indexed, or
-- gone.
create or replace function begin_search(inbox text, newest integer, at timestamptz) returns void
language plpgsql
as $$
declare
  b inbox;
begin
  -- Filing locks this row too. So all smaller message numbers are committed, and all greater ones come after this commit.
  select * into b from inbox n where n.id = inbox and n.status = 'active' for share;
  if not found then return; end if;
  -- While no inbox is searched, the outbox is not read for words. Rows of transactions that still run come after the new
  -- cursor.
  if not exists (select from searched_inbox) then
    perform from outbox_cursor where name = 'search' for update;
    if not exists (select from searched_inbox) then
      update outbox_cursor set xact = pg_snapshot_xmin(pg_current_snapshot()), seq = 0
      where name = 'search' and xact < pg_snapshot_xmin(pg_current_snapshot());
    end if;
  end if;
  insert into searched_inbox as k (inbox_id, organization_id, until_seq, newest_id, before_id, used_at)
  -- This text sorts after the newest id and before every greater id.
  select b.id, b.organization_id, b.message_seq, coalesce(max(n.id), ''), max(n.id) || '_', at
  from unnest(array['inbound', 'outbound']) d cross join lateral (
    select m.id from message m where m.inbox_id = b.id and m.direction = d order by m.id desc limit 1
  ) n
  on conflict (inbox_id) do update set until_seq = excluded.until_seq, newest_id = excluded.newest_id,
    before_id = excluded.before_id, used_at = excluded.used_at, removed_to = null
  where k.removed_to is not null;
  insert into search_part (organization_id, inbox_id, after_id, from_seq)
  select b.organization_id, b.id, older_id(b.id, 'msg_g', newest), b.message_seq + 1
  where not exists (select from search_part p where p.inbox_id = b.id);
end $$;
