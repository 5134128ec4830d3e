// Filtered lists read only their page, however many rows do not match, even if no row matches. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { firstUuidAt, type InboxId, type OrganizationId } from '../../src/base/ids.ts'
import { Db, type Tx } from '../../src/postgres/db.ts'
import { listInboxesByActivity } from '../../src/store/mailbox/inboxes.ts'
import { listConversations } from '../../src/store/mailbox/mail-rows.ts'
import { listMessages, type MessageFilter } from '../../src/store/mailbox/message-pages.ts'
import { listSubmissions, type SubmissionFilter } from '../../src/store/sending/submissions.ts'
import { findSuppression } from '../../src/store/sending/suppressions.ts'
import { submissionStatuses } from '../../src/store/status.ts'
import { fetchedRows } from '../support/fetched-rows.ts'
import { testDatabase, turnAutovacuumOff } from '../support/postgres.ts'

// One connection, so that the plans made over empty tables are the plans that run.
const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())
const organizationId = '00000000-0000-7000-8000-000000000001' as OrganizationId
const strangerId = '00000000-0000-7000-8000-000000000002' as OrganizationId
const [inboxId, quietId] = ['inb_a' as InboxId, 'inb_b' as InboxId]
const rows = 20_000
const startMs = Date.parse('2026-11-21T09:00:00Z')
const hourMs = 3_600_000

const rowsRead = (work: (tx: Tx) => Promise<unknown>) => fetchedRows(db, work)

/** An inbox that has only received, from one sender, and an organization whose submissions are all delivered. */
async function fill(): Promise<void> {
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at) values ($1, '', 'active', '{}', now(), now())`,
    [organizationId],
  )
  await db.query(
    `insert into inbox (id, organization_id, local_part, domain, display_name, status, created_at, updated_at)
    select id, $1, id, 'inbox.test', '', 'active', now(), now() from unnest($2::text[]) id`,
    [organizationId, [inboxId, quietId]],
  )
  await db.query(
    `insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
      sender, recipients, subject, text, metadata, purpose, attachments, created_at, updated_at)
    select 'msg_' || lpad(to_hex($3::bigint + i * 1000), 12, '0') || '000000000000', $1, $2, 'thr_' || i, i, 'inbound', 'm' || i,
      '{}', '{"email": "Ada@far.test"}', '{"to": []}', 's', 't', '{}', 'unclassified', '[]', now(), now()
    from generate_series(1, $4::integer) i`,
    [organizationId, inboxId, startMs, rows],
  )
  await db.query(
    `insert into thread (id, organization_id, inbox_id, subject, participants, message_count, last_message_at, created_at)
    select 'thr_' || i, $1, $2, 's', '{}', 1, to_timestamp(i), to_timestamp(i) from generate_series(1, $3::integer) i`,
    [organizationId, inboxId, rows],
  )
  await db.query(
    `insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, inbox_id, sender,
      subject, metadata, purpose, status, created_at, updated_at)
    select (substr(h, 1, 8) || '-' || substr(h, 9) || '-7000-8000-000000000000')::uuid, $1, 'message', i::text,
      decode(lpad(to_hex(i), 64, '0'), 'hex'), '', $2, '{"email": ""}', 's', '{}', 'unclassified', 'delivered', now(), now()
    from (select i, lpad(to_hex($3::bigint + i * 1000), 12, '0') as h from generate_series(1, $4::integer) i) x`,
    [organizationId, inboxId, startMs, rows],
  )
  await db.query(
    `insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status, due_at,
      expires_at, updated_at)
    select id, 0, $1, 'a@far.test', 'a@far.test', 'far.test', '@relay', 'delivered', now(), now(), now() from submission`,
    [organizationId],
  )
  await db.query(
    `insert into suppression (organization_id, address_key, id, email, reason, created_at)
    select $1, 'a' || i || '@far.test', gen_random_uuid(), 'a' || i || '@far.test', 'manual', now()
    from generate_series(1, $2::integer) i`,
    [organizationId, rows],
  )
}

const everything: MessageFilter = {
  inboxId,
  direction: null,
  from: null,
  sinceId: null,
  untilId: null,
  words: null,
}
const idAt = (ms: number) => `msg_${ms.toString(16).padStart(12, '0')}`
const messageFilters: [name: string, change: Partial<MessageFilter>, found: number][] = [
  ['none', {}, 50],
  ['of an inbox that has none', { inboxId: quietId }, 0],
  ['direction', { direction: 'inbound' }, 50],
  ['direction, with no hit', { direction: 'outbound' }, 0],
  ['from', { from: 'ada@far.test' }, 50],
  ['from, with no hit', { from: 'eve@far.test' }, 0],
  ['from itself, with no hit', { from: 'inb_a@inbox.test' }, 0],
  ['from and direction, with no hit', { from: 'ada@far.test', direction: 'outbound' }, 0],
  ['until the oldest', { untilId: idAt(startMs) }, 0],
  ['since the newest', { sinceId: idAt(startMs + (rows - 9) * 1000) }, 10],
  ['from, until the oldest ten', { from: 'ada@far.test', untilId: idAt(startMs + 10_500) }, 10],
]

const all: SubmissionFilter = {
  organizationId,
  inboxIds: null,
  status: null,
  recipientKey: null,
  sinceId: null,
  untilId: null,
}
const submissionFilters: [name: string, change: Partial<SubmissionFilter>, found: number][] = [
  ['none', {}, 50],
  ...submissionStatuses.map((status): [string, Partial<SubmissionFilter>, number] => [
    status,
    { status },
    status === 'delivered' ? 50 : 0,
  ]),
  ['of an organization that has none', { organizationId: strangerId }, 0],
  ['delivered, of an organization that has none', { organizationId: strangerId, status: 'delivered' }, 0],
  ['failed, of an inbox', { status: 'failed', inboxIds: [inboxId] }, 0],
  ['of inboxes that sent nothing', { inboxIds: [quietId] }, 0],
  ['of two inboxes', { inboxIds: [inboxId, quietId] }, 50],
  ['until the oldest', { untilId: firstUuidAt(startMs) }, 0],
  ['until the oldest, failed', { untilId: firstUuidAt(startMs + hourMs), status: 'failed' }, 0],
  ['since the newest', { sinceId: firstUuidAt(startMs + (rows - 9) * 1000) }, 10],
  ['to a recipient', { recipientKey: 'a@far.test' }, 50],
  ['to a recipient, with no hit', { recipientKey: 'b@far.test' }, 0],
  ['to a recipient, until the oldest', { recipientKey: 'a@far.test', untilId: firstUuidAt(startMs) }, 0],
]

const suppressed: [key: string, found: string | null][] = [
  [`a${rows}@far.test`, `a${rows}@far.test`],
  ['nobody@far.test', null],
]

const conversationLists: [name: string, of: InboxId[] | null, before: Date | null, found: number][] = [
  ['of all inboxes', null, null, 50],
  ['of an inbox', [inboxId], null, 50],
  ['of an inbox that has none', [quietId], null, 0],
  ['before the eleventh', null, new Date(11_000), 10],
]

/** How the statements are planned, and the step between one case and the next. */
const plans = [
  ['as planned over empty tables', 'analyze'],
  ['analyzed', 'set plan_cache_mode = force_generic_plan'],
  ['planned for any values', null],
] as const

test('hostile 14: filters over 20,000 messages, submissions and suppressions read one page, and almost nothing without a hit', async (t) => {
  const messages = async (tx: Tx, change: Partial<MessageFilter>) =>
    (await listMessages(tx, { ...everything, ...change }, null, 50)).page
  const submissions = (tx: Tx, change: Partial<SubmissionFilter>) =>
    listSubmissions(tx, { ...all, ...change }, null, 51)
  const conversations = (tx: Tx, inboxIds: InboxId[] | null, at: Date | null) =>
    listConversations(tx, { organizationId, inboxIds }, at && { at, id: '' }, 50)
  const inboxes = (tx: Tx) => listInboxesByActivity(tx, { organizationId, ids: null, text: null }, null, 50)
  await turnAutovacuumOff(db)
  // Planned over empty tables, as in a new deployment.
  for (const [, change] of messageFilters) await rowsRead((tx) => messages(tx, change))
  for (const [, change] of submissionFilters) await rowsRead((tx) => submissions(tx, change))
  for (const [key] of suppressed) await rowsRead((tx) => findSuppression(tx, organizationId, key))
  for (const [, of, before] of conversationLists) await rowsRead((tx) => conversations(tx, of, before))
  await rowsRead(inboxes)
  await fill()
  for (const [when, next] of plans) {
    for (const [name, change, found] of messageFilters)
      await t.test(`messages: ${name}, ${when}`, async () => {
        const read = await rowsRead(async (tx) => assert.equal((await messages(tx, change)).length, found))
        assert.ok(read <= (found === 0 ? 10 : 300), `${read} rows`)
      })
    for (const [name, change, found] of submissionFilters)
      await t.test(`submissions: ${name}, ${when}`, async () => {
        const read = await rowsRead(async (tx) =>
          assert.equal(Math.min(50, (await submissions(tx, change)).length), found),
        )
        assert.ok(read <= (found === 0 ? 10 : 400), `${read} rows`)
      })
    for (const [key, found] of suppressed)
      await t.test(`suppressions: the entry of ${key}, ${when}`, async () => {
        const read = await rowsRead(async (tx) =>
          assert.equal((await findSuppression(tx, organizationId, key))?.email ?? null, found),
        )
        assert.ok(read <= 2, `${read} rows`)
      })
    for (const [name, of, before, found] of conversationLists)
      await t.test(`conversations: ${name}, ${when}`, async () => {
        const read = await rowsRead(async (tx) =>
          assert.equal((await conversations(tx, of, before)).length, found),
        )
        assert.ok(read <= (found === 0 ? 10 : 300), `${read} rows`)
      })
    await t.test(`inboxes by their newest mail, ${when}`, async () => {
      const read = await rowsRead(async (tx) =>
        assert.deepEqual(
          (await inboxes(tx)).map(({ id }) => id),
          [inboxId, quietId],
        ),
      )
      assert.ok(read <= 10, `${read} rows`)
    })
    if (next !== null) await db.query(next)
  }
})
