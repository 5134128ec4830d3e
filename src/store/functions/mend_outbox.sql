-- Transaction numbers from another cluster, restored from a dump, would hold up every reader for years. Renumbers all rows
-- in their order, below every future transaction. Returns whether that was needed.
create or replace function mend_outbox() returns boolean
language plpgsql
as $$
declare
  ahead xid8;
begin
  -- Compares within one snapshot: in a later snapshot, rows that others have committed meanwhile would seem to be ahead.
  if not exists (select from outbox where xact > pg_snapshot_xmax(pg_current_snapshot()))
    and not exists (select from outbox_cursor where xact > pg_snapshot_xmax(pg_current_snapshot())) then return false; end if;
  lock table outbox in exclusive mode;
  -- The lock keeps others from adding rows. Another node may have renumbered them while this one waited for the lock.
  ahead := pg_snapshot_xmax(pg_current_snapshot());
  if not exists (select from outbox where xact > ahead)
    and not exists (select from outbox_cursor where xact > ahead) then return false; end if;
  update outbox_cursor c set xact = '3',
    seq = (select count(*) from outbox o where c.xact > ahead and o.xact > ahead and (o.xact, o.seq) <= (c.xact, c.seq));
  update outbox o set xact = pg_current_xact_id(), seq = n.ordinal
  from (
    select xact, seq, row_number() over (order by xact > ahead desc, xact, seq) as ordinal from outbox
  ) n
  where o.xact = n.xact and o.seq = n.seq;
  update outbox set xact = '3';
  return true;
end $$;
