-- Puts newly filed messages into their threads. The columns are those of `file_messages`. `living`: the ordinals of the
-- mails that became messages.
create or replace function join_threads(
  living integer[], ids text[], in_inboxes text[], orgs uuid[], threads text[], candidate_lines text[],
  participant_lines text[], subjects text[], times timestamptz[])
returns void
language plpgsql
as $$
declare
  -- Ordinals of the mails with a known ancestor.
  related integer[];
  mail integer;
  joined text;
  shared text[] := '{}';
begin
  -- RFC 5322 3.6.4: a mail joins its nearest known ancestor's thread. Messages that had already joined the mail's own
  -- thread move with it.
  related := array(
    select g from unnest(living) g where candidate_lines[g] <> '' and exists (
      select from unnest(string_to_array(candidate_lines[g], E'\n')) c(mid) cross join lateral (
        select from message m where m.inbox_id = in_inboxes[g] and m.internet_message_id = c.mid limit 1) found)
    order by g);
  if related <> '{}' then
    foreach mail in array related loop
      select m.thread_id into joined
        from unnest(string_to_array(candidate_lines[mail], E'\n')) with ordinality c(mid, nearness)
        join message m on m.inbox_id = in_inboxes[mail] and m.internet_message_id = c.mid
        order by c.nearness, m.seq limit 1;
      update message m set thread_id = joined where m.thread_id = threads[mail];
    end loop;
    -- The limit makes each lookup one index probe, whatever the planner's statistics say.
    shared := array(
      select distinct m.thread_id from unnest(related) g
      cross join lateral (select thread_id from message where id = ids[g] limit 1) m);

    insert into thread as t (id, organization_id, inbox_id, subject, participants, message_count, last_message_at,
      created_at)
    select m.thread_id, m.organization_id, m.inbox_id, (array_agg(m.subject order by m.seq))[1],
      join_participants('{}', array_agg(p.email order by m.seq, p.ordinal)), count(distinct m.id), max(m.created_at),
      min(m.created_at)
    from unnest(living) g
    cross join lateral (select * from message where id = ids[g] limit 1) m
    left join lateral unnest(string_to_array(participant_lines[g], E'\n')) with ordinality p(email, ordinal) on true
    where m.thread_id = any(shared)
    group by m.thread_id, m.organization_id, m.inbox_id
    on conflict (id) do update set
      message_count = t.message_count + excluded.message_count,
      last_message_at = greatest(t.last_message_at, excluded.last_message_at),
      participants = join_participants(t.participants, excluded.participants);
  end if;
  insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
  select threads[g], orgs[g], in_inboxes[g], subjects[g], string_to_array(participant_lines[g], E'\n'), 1, times[g], times[g]
  from unnest(living) g where g <> all(related) and threads[g] <> all(shared);
end $$;
