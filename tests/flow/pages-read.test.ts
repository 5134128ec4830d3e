// Lists read as many pages of tables and indexes in a large inbox as in a small one. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type InboxId, newUuid, type OrganizationId, type WebhookId } from '../../src/base/ids.ts'
import { Db } from '../../src/postgres/db.ts'
import { listWebhookDeliveries } from '../../src/store/events/webhook-deliveries.ts'
import { listFollowing, listMessages } from '../../src/store/mailbox/message-pages.ts'
import { listThreads } from '../../src/store/mailbox/messages.ts'
import { listSubmissions } from '../../src/store/sending/submissions.ts'
import { testDatabase, turnAutovacuumOff } from '../support/postgres.ts'

// One connection, so that the plans made over empty tables are the plans that run.
const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())
await turnAutovacuumOff(db)

const organizationId = newUuid<OrganizationId>()
const inboxId = 'inb_000000000001' as InboxId
const webhookId = 'whk_1' as WebhookId
const uuidOf = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const timeOf = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1000)

/** Adds rows of each kind, with the numbers from `first` to `last`. Every fourth message is sent. */
async function fill(first: number, last: number): Promise<void> {
  const numbered = `from (select n, lpad(to_hex(n), 12, '0') as hex,
    timestamptz '2026-01-01 00:00:00Z' + n * interval '1 second' as at from generate_series($2::integer, $3::integer) n) i`
  const values = [organizationId, first, last]
  await db.query(
    `insert into inbox (id, organization_id, local_part, domain, display_name, status, created_at, updated_at)
    select 'inb_' || hex, $1, hex, 'here.test', '', 'active', at, at ${numbered} where n = 1`,
    values,
  )
  await db.query(
    `insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids, sender,
      recipients, subject, text, metadata, purpose, attachments, submission_id, created_at, updated_at)
    select 'msg_' || hex, $1, '${inboxId}', 'thr_' || hex, n, case when n % 4 = 0 then 'outbound' else 'inbound' end, hex, '{}',
      jsonb_build_object('email', 'a' || n % 2 || '@far.test'), '{"to": []}', '', repeat('text ', 100), '{}', '', '[]', null, at, at
    ${numbered}`,
    values,
  )
  await db.query(
    `insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
    select 'thr_' || hex, $1, '${inboxId}', '', '{}', 1, at, at ${numbered}`,
    values,
  )
  await db.query(
    `insert into submission (id, organization_id, inbox_id, operation, idempotency_key, idempotency_digest, request_hash, sender,
      subject, metadata, purpose, status, created_at, updated_at)
    select ('00000000-0000-7000-8000-' || hex)::uuid, $1, '${inboxId}', 'message', hex, hex::bytea, '',
      '{"email": "a@here.test"}', '', '{}', '', 'delivered', at, at ${numbered}`,
    values,
  )
  await db.query(
    `insert into webhook_delivery (id, organization_id, webhook_id, item, announced_at, status, created_at)
    select ('00000000-0000-7000-8000-' || hex)::uuid, $1, '${webhookId}', '{}', at, 'succeeded', at ${numbered}`,
    values,
  )
}

/** Returns how many pages of tables and indexes `work` read. */
async function countPages(work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    // PostgreSQL reports the counts of a session at the end of the statement that asks for it.
    await db.query('select pg_stat_force_next_flush()')
    const [row] = await db.query<{ pages: number }>(
      `select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint as pages
      from pg_statio_user_tables`,
    )
    return row!.pages
  }
  const before = await count()
  await work()
  return (await count()) - before
}

/** The lists, by name: the first page, and the page after the row with the number `middle`. Each has 20 rows, or none. */
function listsOf(middle: number): Record<string, () => Promise<unknown[]>> {
  const hex = middle.toString(16).padStart(12, '0')
  const plain = { inboxId, direction: null, from: null, sinceId: null, untilId: null, words: null } as const
  const messages = async (
    filter: Partial<Parameters<typeof listMessages>[1]>,
    before: string | null = null,
  ) => (await listMessages(db, { ...plain, ...filter }, before, 20)).page
  const sent = {
    organizationId,
    inboxIds: null,
    status: null,
    recipientKey: null,
    sinceId: null,
    untilId: null,
  } as const
  const submissions = async (
    filter: Partial<Parameters<typeof listSubmissions>[1]>,
    before: string | null = null,
  ) => await listSubmissions(db, { ...sent, ...filter }, before, 20)
  const position = { lastMessageAt: timeOf(middle), id: `thr_${hex}` }
  return {
    messages: () => messages({}),
    'messages, later': () => messages({}, `msg_${hex}`),
    'received messages': () => messages({ direction: 'inbound' }),
    'received messages, later': () => messages({ direction: 'inbound' }, `msg_${hex}`),
    'received messages until a time': () => messages({ direction: 'inbound', untilId: `msg_${hex}` }),
    'sent messages': () => messages({ direction: 'outbound' }),
    'sent messages of the future': () => messages({ direction: 'outbound', sinceId: 'msg_f' }),
    'messages of a sender': () => messages({ from: 'a1@far.test' }),
    'messages of a sender, later': () => messages({ from: 'a1@far.test' }, `msg_${hex}`),
    'messages of a stranger': () => messages({ from: 'stranger@far.test' }),
    'messages after one': async () => (await listFollowing(db, plain, middle, 20)).page,
    threads: () => listThreads(db, inboxId, null, 20),
    'threads, later': () => listThreads(db, inboxId, position, 20),
    submissions: () => submissions({}),
    'submissions, later': () => submissions({}, uuidOf(middle)),
    'failed submissions': () => submissions({ status: 'failed' }),
    'submissions of an inbox': () => submissions({ inboxIds: [inboxId] }),
    'failed submissions of an inbox': () => submissions({ inboxIds: [inboxId], status: 'failed' }),
    'webhook calls': () => listWebhookDeliveries(db, webhookId, null, 20),
    'webhook calls, later': () => listWebhookDeliveries(db, webhookId, uuidOf(middle), 20),
  }
}

test('each list reads as many pages among 8,000 rows as among 400', async () => {
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at) values ($1, '', 'active', '{}', now(), now())`,
    [organizationId],
  )
  // The first calls plan the statements over empty tables.
  for (const list of Object.values(listsOf(0))) assert.equal((await list()).length, 0)
  const read = async (lists: Record<string, () => Promise<unknown[]>>) => {
    const pages: Record<string, number> = {}
    for (const [name, list] of Object.entries(lists)) {
      // After ANALYZE the first call also reads pages to plan the statement.
      assert.equal((await list()).length, /future|stranger|failed/.test(name) ? 0 : 20, name)
      pages[name] = await countPages(list)
    }
    return pages
  }
  await fill(1, 400)
  const few = await read(listsOf(200))
  await fill(401, 8_000)
  const many = await read(listsOf(4_000))
  await db.query('analyze')
  const analyzed = await read(listsOf(4_000))
  for (const [name, pages] of Object.entries(few)) {
    // An index of more rows may be one level higher.
    const most = 1.3 * pages + 2
    assert.ok(many[name]! <= most, `${name}: ${pages} pages among few rows, ${many[name]} among many`)
    assert.ok(
      analyzed[name]! <= most,
      `${name}: ${pages} pages among few rows, ${analyzed[name]} once analyzed`,
    )
  }
})
