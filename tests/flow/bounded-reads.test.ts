// Loops and look-ups read no rows of unrelated mail, whenever they were planned. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { OrganizationId, SubmissionId } from '../../src/base/ids.ts'
import { Db, type Tx } from '../../src/postgres/db.ts'
import { deleteSettledContents } from '../../src/store/domains/domain-use.ts'
import { findAddressEvidence } from '../../src/store/mailbox/address-evidence.ts'
import { moveToRoutes } from '../../src/store/sending/deliveries.ts'
import { fetchedRows } from '../support/fetched-rows.ts'
import { testDatabase } from '../support/postgres.ts'

const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())
const organizationId = '00000000-0000-7000-8000-000000000001' as OrganizationId
const sends = 20_000
const at = new Date('2026-11-21T09:00:00Z')

const rowsRead = (work: (tx: Tx) => Promise<unknown>) => fetchedRows(db, work)

const look = (tx: Tx) => findAddressEvidence(tx, organizationId, ['a7@far.test', 'none@far.test'])
const move = (tx: Tx) => moveToRoutes(tx, null, 'inbox.test', at)
const purge = (tx: Tx) => deleteSettledContents(tx, new Date(at.getTime() - 3_600_000), null, 500)

/** Sends mail through one domain. Half of it still waits in the queues of a hundred domains. */
async function fill(): Promise<void> {
  await db.query(
    `insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, sender,
      subject, metadata, purpose, status, created_at, updated_at)
    select ('10000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $1, 'send', i::text,
      decode(lpad(to_hex(i), 64, '0'), 'hex'), '', '{}', 's', '{}', 'unclassified', 'pending', $2, $2
    from generate_series(1, $3::integer) i`,
    [organizationId, at, sends],
  )
  await db.query(
    `insert into send_content (submission_id, organization_id, domain_id, internet_message_id, recipients, text, headers,
      created_at)
    select id, organization_id, organization_id, 'm', '{}', 't', '{}', $1 from submission`,
    [at],
  )
  await db.query(
    `insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status, due_at,
      expires_at, failure_code, updated_at)
    select id, 0, organization_id, 'a' || n || '@far.test', 'a' || n || '@far.test', 'far' || n % 100, 'far' || n % 100,
      case when n % 2 = 0 then 'deferred' else 'bounced' end, $1, $1, case when n % 2 = 1 then 'hard_bounce' end, $1
    from (select id, organization_id, row_number() over (order by id) as n from submission) s`,
    [at],
  )
  await db.query(
    `insert into event (submission_id, seq, id, organization_id, type, recipient, at, classification)
    select submission_id, 1, submission_id, organization_id, 'bounced', email, $1, 'hard_bounce' from delivery`,
    [at],
  )
}

test('moving, purging and validating read almost no rows of 20,000 unrelated sends', async () => {
  for (const work of [look, move, purge]) await rowsRead(work)
  await fill()
  assert.ok((await rowsRead(look)) < 50)
  await db.query('analyze')
  for (const [work, most] of [
    [look, 50],
    [move, 500],
    [purge, 50],
  ] as const) {
    const read = await rowsRead(work)
    assert.ok(read < most, `${read} rows`)
  }
  assert.deepEqual(await db.transaction(look), [
    { isSuppressed: false, mailbox: false },
    { isSuppressed: false, mailbox: null },
  ])
})

test('a purge deletes settled contents among waiting ones, reads the waiting ones once, and ends', async () => {
  // The ids of these sends begin with a later time.
  const late = new Date('2600-01-01T00:00:00Z')
  await db.query(
    `update submission set status = 'delivered' where id in (select id from submission order by id desc limit 1100)`,
  )
  const reads: number[] = []
  let from: SubmissionId | null = null
  do {
    const begin: SubmissionId | null = from
    const batch = async (tx: Tx) => (from = (await deleteSettledContents(tx, late, begin, 500)).last)
    reads.push(await rowsRead(batch))
  } while (from !== null && reads.length < 10)
  assert.equal(reads.length, 3)
  assert.ok(reads[0]! > sends, `${reads[0]} rows to get past what waits`)
  for (const read of reads.slice(1)) assert.ok(read < 5_000, `${read} rows`)
  const [row] = await db.query<{ count: number; settled: number }>(
    `select count(*)::integer as count, (count(*) filter (where s.status <> 'pending'))::integer as settled
    from send_content c join submission s on s.id = c.submission_id`,
  )
  assert.deepEqual(row, { count: sends - 1_100, settled: 0 })
})
