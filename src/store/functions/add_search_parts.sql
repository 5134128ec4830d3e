-- Begins a new part in each inbox where one of these messages needs it; returns in how many. All that has been indexed of
-- an inbox has a smaller number than the new part begins with, and so an id that is not behind its `after_id`.
create or replace function add_search_parts(ids text[]) returns integer
language plpgsql
as $$
declare
  added integer;
begin
  insert into search_part (organization_id, inbox_id, after_id, from_seq)
  select n.organization_id, n.inbox_id,
    coalesce(greatest(n.after_id, (
      select max(e.id) from (
        select m.id from message m
        where m.inbox_id = n.inbox_id and m.direction in ('inbound', 'outbound') and m.seq >= n.from_seq and m.seq < n.next_seq
        order by m.seq limit 1000000
      ) e where n.from_seq is not null
    )), ''),
    case when n.from_seq is null then 0 else n.next_seq end
  from (
    select m.organization_id, m.inbox_id, l.after_id, l.from_seq, max(m.seq) / 4096 * 4096 as next_seq
    from unnest(ids) as i(id)
    cross join lateral (select * from message n where n.id = i.id limit 1) m
    join inbox b on b.id = m.inbox_id and b.status = 'active'
    left join lateral (
      select p.after_id, p.from_seq from search_part p where p.inbox_id = m.inbox_id
      order by p.after_id desc, p.number desc limit 1
    ) l on true
    group by m.organization_id, m.inbox_id, l.after_id, l.from_seq
  ) n
  where n.from_seq is null or n.next_seq > n.from_seq;
  get diagnostics added = row_count;
  return added;
end $$;
