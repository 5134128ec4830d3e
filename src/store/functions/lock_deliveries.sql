-- Locks the deliveries that brought these mails, if our own nodes sent them, in the order in which results are recorded.
-- `deliveries`: array of {i, submission, position}. Mails in `again` are ignored. Returns the mails that must not be
-- stored. These are all mails of a delivery that is marked as kept (stored before), and all but the first mail of an
-- unmarked delivery.
create or replace function lock_deliveries(deliveries jsonb, again integer[]) returns table (i integer, is_kept boolean)
language sql volatile
as $$
  with given as materialized (
    select x.* from jsonb_to_recordset(deliveries) as x(i integer, submission uuid, "position" integer) where x.i <> all(again)
  ), locked as materialized (
    select d.submission_id, d.position, d.kept_at from (select distinct g.submission, g.position from given g) g
    join delivery d on d.submission_id = g.submission and d.position = g.position
    order by d.submission_id, d.position for no key update of d
  )
  select n.i, n.is_kept from (
    select g.i, l.kept_at is not null as is_kept, row_number() over (partition by g.submission, g.position order by g.i) as ordinal
    from given g join locked l on l.submission_id = g.submission and l.position = g.position
  ) n
  where n.is_kept or n.ordinal > 1
$$;
