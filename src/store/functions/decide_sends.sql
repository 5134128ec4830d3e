-- Decides a batch of sends and counts those that pass. The batch comes as columns, with one element per send. The `to_…`
-- columns have one element per recipient, with the ordinal of its send, from 1. Returns a row per send, in order:
-- `accepted`, `replayed` or the code of a refusal; whether it must be written; the ordinals of its suppressed recipients in
-- the batch. An organization's limits neither count nor refuse an uncounted send.
create or replace function decide_sends(
  at timestamptz, orgs uuid[], keys uuid[], digests bytea[], hashes bytea[], in_inboxes text[], replied_threads text[],
  subs uuid[], recipient_counts integer[], to_sends integer[], to_keys text[], are_uncounted boolean[])
returns table (i integer, verdict text, is_new boolean, submission_id uuid, retry_after integer, suppressed integer[])
language plpgsql
as $$
declare
  verdicts text[];
  earlier uuid[];
  waits integer[] := array_fill(null::integer, array[cardinality(orgs)]);
  hits integer[];
  counted uuid[];
begin
  -- Until this commits, no other batch counts sends of these organizations. The queries below see what earlier batches
  -- committed.
  perform 1 from usage u where u.organization_id = any(orgs) order by u.organization_id for update;
  if array_remove(in_inboxes, null) <> '{}' then
    perform 1 from inbox b where b.id = any(in_inboxes) order by b.id for no key update;
  end if;

  select c.* into verdicts, earlier, recipient_counts, hits
  from check_sends(at, orgs, keys, digests, hashes, in_inboxes, replied_threads, subs, recipient_counts, to_sends, to_keys) c;

  counted := array(select count_sends(array_agg(n.org order by n.org), array_agg(n.messages order by n.org),
    array_agg(n.recipients order by n.org), at)
    from (select orgs[g] as org, count(*)::integer as messages, sum(recipient_counts[g])::integer as recipients
      from generate_series(1, cardinality(orgs)) g where verdicts[g] is null and not are_uncounted[g] group by 1) n);
  -- An organization whose sends exceed its limits together gets a decision for each, in order.
  for i in select g from generate_series(1, cardinality(orgs)) g
    where verdicts[g] is null and not are_uncounted[g] and orgs[g] <> all(counted) order by orgs[g], g
  loop
    continue when exists (select count_sends(orgs[i:i], '{1}', recipient_counts[i:i], at));
    verdicts[i] := 'send_limit_exceeded';
    waits[i] := (select send_wait(o.limits, u, 1, recipient_counts[i], at)
      from usage u join organization o on o.id = u.organization_id where u.organization_id = orgs[i]);
  end loop;

  return query select g, coalesce(verdicts[g], 'accepted'), verdicts[g] is null, coalesce(earlier[g], subs[g]), waits[g],
    case when hits = '{}' then hits else array(select n from unnest(hits) n where to_sends[n] = g) end
  from generate_series(1, cardinality(orgs)) g order by g;
end $$;
