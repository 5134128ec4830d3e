// What statements cost, told by the rows they look at: nothing multiplies, whatever the tables held when they were planned.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newUuid, type SubmissionId } from '../../src/base/ids.ts'
import { readBacklog } from '../../src/store/backlog.ts'
import { Db, type Tx } from '../../src/store/db.ts'
import { deleteRollUps } from '../../src/store/metrics.ts'
import { lockReported } from '../../src/store/reports.ts'
import { testDatabase } from '../support/postgres.ts'

// One connection, so that what was planned over empty tables is what runs.
const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())

/** Runs `work` in a transaction; answers what it answers, and how many rows of the table it has looked at. */
async function countRows<Result>(
  table: string,
  work: (tx: Tx) => Promise<Result>,
): Promise<{ result: Result; rows: number }> {
  return await db.transaction(async (tx) => {
    const result = await work(tx)
    const [row] = await tx.query<{ rows: number }>(
      `select coalesce(idx_tup_fetch, 0) + seq_tup_read as rows from pg_stat_xact_user_tables where relname = $1`,
      [table],
    )
    return { result, rows: row!.rows }
  })
}

test('64 reports about a submission of 1,000 recipients look through its events once', async () => {
  const submissionId = newUuid<SubmissionId>()
  const organizationId = newUuid()
  await db.query(
    `insert into submission (id, organization_id, operation, idempotency_key, idempotency_digest, request_hash, sender,
      subject, metadata, purpose, status, event_seq, created_at, updated_at)
    values ($1, $2, 'message', 'key', '', '', '{"email": "a@inbox.test"}', '', '{}', '', 'delivered', 3000, now(), now())`,
    [submissionId, organizationId],
  )
  await db.query(
    `insert into delivery (submission_id, position, organization_id, email, address_key, domain, route, status, due_at,
      expires_at, updated_at)
    select $1, n, $2, n || '@far.test', n || '@far.test', 'far.test', '@relay', 'delivered', now(), now(), now()
    from generate_series(0, 999) n`,
    [submissionId, organizationId],
  )
  await db.query(
    `insert into event (submission_id, seq, id, organization_id, type, recipient, at, attempt, response)
    select $1, n, gen_random_uuid(), $2, 'deferred', n % 1000 || '@far.test', now(), nullif(n % 1000, 7), '450'
    from generate_series(1, 3000) n`,
    [submissionId, organizationId],
  )
  const places = Array.from({ length: 64 }, () => ({ submissionId, position: null }))
  const { result, rows } = await countRows('event', (tx) => lockReported(tx, places))
  assert.equal(result.length, 1000)
  assert.deepEqual(
    result.flatMap(({ position, isDelayTold }) => (isDelayTold ? position : [])),
    [7],
  )
  assert.ok(rows <= 3000, `${rows} events`)
  const one = await countRows('event', (tx) => lockReported(tx, [{ submissionId, position: 7 }]))
  assert.deepEqual(
    one.result.map(({ position, isDelayTold }) => [position, isDelayTold]),
    [[7, true]],
  )
})

test('letting go of old roll-ups looks at those alone, though all organizations have the same hours', async () => {
  const until = new Date(Date.now() - 3_600_000)
  assert.equal(await deleteRollUps(db, 'hour', until, 500), 0)
  await db.query(
    `insert into metric select o.id, 'destination', 'hour', date_trunc('hour', now()) - h * interval '1 hour', 'x' || k,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null
    from (select gen_random_uuid() as id from generate_series(1, 200)) o, generate_series(2, 4) h, generate_series(1, 10) k`,
  )
  const { result, rows } = await countRows('metric', (tx) => deleteRollUps(tx, 'hour', until, 500))
  assert.equal(result, 500)
  assert.ok(rows <= 1_500, `${rows} roll-ups`)
})

test('the oldest webhook call is found behind many of another endpoint', async () => {
  const at = new Date()
  const old = new Date(at.getTime() - 3_600_000)
  for (const [webhook, count, createdAt] of [
    ['whk_a', 2_000, at],
    ['whk_b', 1, old],
    ['whk_c', 1, at],
  ])
    await db.query(
      `insert into webhook_delivery (id, organization_id, webhook_id, item, announced_at, status, created_at)
      select gen_random_uuid(), gen_random_uuid(), $1, '{}', $3, 'pending', $3 from generate_series(1, $2)`,
      [webhook, count, createdAt],
    )
  const { oldestWebhookCallAt, webhookCalls } = await readBacklog(db, at, 1_000_000)
  assert.deepEqual(oldestWebhookCallAt, old)
  assert.equal(webhookCalls, 2_002)
})
