// An inbox full of searched mail, written at once as filing and indexing leave it; the service would take minutes.
import type { Queryable } from '../../src/postgres/db.ts'

const partSize = 4_096

/**
 * Fills an inbox that has had no mail with `count` messages from `old@far.test`, all a day old. All are found by the words
 * `alpha beta`, and each by 20 words of its own that begin with `w`. The oldest `sent` messages are outbound.
 */
export async function fillSearched(
  db: Queryable,
  inboxId: string,
  { count, sent = 0 }: { count: number; sent?: number },
): Promise<void> {
  const dayAgoMs = Date.now() - 86_400_000 - count
  await db.query(
    `insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
      sender, recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
    select 'msg_' || lpad(to_hex($2::bigint + i), 12, '0') || '000000000000', b.organization_id, b.id, 'thr_' || i,
      b.message_seq + i, case when i <= $4::integer then 'outbound' else 'inbound' end, 'm' || i, '{}',
      '{"email": "old@far.test"}', '{"to": []}', 'old ' || i, 'alpha beta', '{}', 'unclassified', '[]', now(), now()
    from inbox b, generate_series(1, $3::integer) i where b.id = $1`,
    [inboxId, dayAgoMs, count, sent],
  )
  await db.query('update inbox set message_seq = message_seq + $2 where id = $1', [inboxId, count])
  await db.query(
    `insert into search_part (organization_id, inbox_id, after_id, from_seq)
    select organization_id, inbox_id, case when seq = 1 then 'msg_' else id end, seq from message
    where inbox_id = $1 and seq % ${partSize} = 1 order by seq`,
    [inboxId],
  )
  await db.query(
    `insert into message_search (message_id, organization_id, inbox_id, words)
    select m.id, m.organization_id, m.inbox_id, (select string_agg(format('''%s_%s'':%s', p.part, w.word, w.place), ' ')
      from (select 'alpha' as word, 1 as place union all select 'beta', 2
        union all select 'w' || m.seq % 500 || 'x' || n, 2 + n from generate_series(1, 20) n) w)::tsvector
    from message m cross join lateral (
      select to_hex(s.number) as part from search_part s where s.inbox_id = m.inbox_id and s.from_seq <= m.seq
      order by s.from_seq desc limit 1
    ) p where m.inbox_id = $1`,
    [inboxId],
  )
  await db.query(
    `insert into searched_inbox (inbox_id, organization_id, until_seq, newest_id, used_at)
    select id, organization_id, message_seq, '', now() from inbox where id = $1`,
    [inboxId],
  )
  await db.query(`select gin_clean_pending_list('message_search_words')`)
}
