// The outbox: one row per organization and commit, ordered, bounded, repaired after a restore. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Db } from '../../src/postgres/db.ts'
import { announce } from '../../src/store/events/outbox.ts'
import { fanOut, mendOutbox } from '../../src/store/events/webhook-deliveries.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { testDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

async function setStage(t: TestContext, endpoints: number) {
  const db = new Db({ connection: await testDatabase({ after: (end) => t.after(end) }) })
  t.after(() => db.close())
  const organizationId = randomUUIDv7()
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at)
    values ($1, 'Test', 'active', '{}', now(), now())`,
    [organizationId],
  )
  await db.query(
    `insert into webhook (id, organization_id, url, status, sealed_secret, created_at, updated_at)
    select 'whk_' || n, $1, '', 'active', '', now(), now() from generate_series(1, $2) n`,
    [organizationId, endpoints],
  )
  const tell = async (count = 1) => {
    const items = Array.from({ length: count }, () => ({
      id: randomUUIDv7(),
      type: 'suppression.created' as const,
    }))
    await db.transaction((tx) => announce(tx, { organizationId, at: new Date(), items }))
    return items.map(({ id }) => id)
  }
  const told = async () => {
    const sql = `select item->>'id' as id from webhook_delivery order by webhook_id, webhook_delivery.id`
    return (await db.query<{ id: string }>(sql)).map(({ id }) => id)
  }
  return { db, organizationId, tell, told }
}

test('outbox: a batch of facts is one row for each organization, its items in order', async (t) => {
  const { db } = await setStage(t, 0)
  const [a, b] = [randomUUIDv7(), randomUUIDv7()].sort() as [string, string]
  const facts = [a, b, a].map((org, n) => ({
    org,
    id: `${n}`,
    type: 'message.sent',
    submission: `s${n}`,
    event: 0,
  }))
  await db.query('select append_outbox($1, now())', [JSON.stringify(facts)])
  const rows = await db.query('select organization_id as org, items from outbox order by organization_id')
  const item = (n: number) => ({ id: `${n}`, type: 'message.sent', submission: `s${n}`, event: 0 })
  assert.deepEqual(rows, [
    { org: a, items: [item(0), item(2)] },
    { org: b, items: [item(1)] },
  ])
  const [made] = await db.query<{ id: string }>('select uuid_v7(now()) as id')
  assert.match(made!.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('outbox: the fan-out takes rows in order, several at a time, and each once', async (t) => {
  const { db, tell, told } = await setStage(t, 1)
  const ids: string[] = []
  for (let n = 0; n < 12; n++) ids.push(...(await tell(5)))
  ids.push(...(await tell(30)))
  let [taken, turn] = [0, 0]
  // Transactions of other tests on the same server delay rows for a while.
  await until('all rows to be taken', async () => {
    const fanned = await fanOut(db.writer, 10, new Date(1_000_000 - turn++))
    assert.ok(fanned.taken <= 2)
    taken += fanned.taken
    assert.ok(!fanned.isMore || taken < 13)
    return taken === 13
  })
  // Ids follow the order of events although the clock went backwards.
  assert.deepEqual(await told(), ids)
  assert.equal((await fanOut(db.writer, 10, new Date())).taken, 0)
})

test('outbox: without an endpoint the fan-out reports it and goes on, and a new endpoint gets later events', async (t) => {
  const { db, tell, told } = await setStage(t, 1)
  const fan = () => fanOut(db.writer, 10, new Date())
  assert.equal((await fan()).isWanted, true)
  await db.query(`update webhook set status = 'deleted'`)
  await tell()
  await until('it to be passed over', async () => {
    const { taken, isWanted } = await fan()
    assert.equal(isWanted, false)
    return taken === 1
  })
  await db.query(`update webhook set status = 'active'`)
  const ids = await tell()
  await until('it to be taken', async () => (await fan()).taken === 1)
  assert.deepEqual(await told(), ids)
})

test('outbox: rows that a running transaction may still add to are not read', async (t) => {
  const { db, tell, told } = await setStage(t, 1)
  await db.transaction(async (tx) => {
    await tx.query('select pg_current_xact_id()')
    await tell()
    const { taken, isMore } = await fanOut(db.writer, 10, new Date())
    assert.deepEqual([taken, isMore], [0, true])
  })
  await until('it to be taken', async () => (await fanOut(db.writer, 10, new Date())).taken === 1)
  assert.equal((await told()).length, 1)
})

test('check 90: an outbox from another cluster is renumbered, and no event is repeated or left out', async (t) => {
  const { db, tell, told } = await setStage(t, 1)
  const ids: string[] = []
  for (let round = 0; round < 2; round++) {
    ids.push(...(await tell()))
    await fanOut(db.writer, 10, new Date())
    ids.push(...(await tell()))
    // A dump brings transaction numbers far ahead of this cluster's.
    const ahead = `update %s set xact = (xact::text::bigint + 1000000000)::text::xid8`
    await db.query(ahead.replace('%s', 'outbox'))
    await db.query(ahead.replace('%s', 'outbox_cursor'))
    ids.push(...(await tell()))
    assert.equal((await fanOut(db.writer, 10, new Date())).taken, 0)
    assert.deepEqual([await db.transaction(mendOutbox), await db.transaction(mendOutbox)], [true, false])
    ids.push(...(await tell()))
    while ((await fanOut(db.writer, 10, new Date())).isMore);
    assert.deepEqual(await told(), ids)
  }
})

test('check 90: nodes that start together renumber the outbox once, and repeat no event', async (t) => {
  const { db, tell, told } = await setStage(t, 1)
  const ids = [...(await tell()), ...(await tell())]
  await fanOut(db.writer, 10, new Date())
  for (const table of ['outbox', 'outbox_cursor'])
    await db.query(`update ${table} set xact = (xact::text::bigint + 1000000000)::text::xid8`)
  const mended = await db.transaction(async (tx) => {
    await tx.query('lock table outbox in share mode')
    const nodes = [1, 2, 3].map(() => db.transaction(mendOutbox))
    await untilLocked(db, { count: 3 })
    return nodes
  })
  assert.deepEqual((await Promise.all(mended)).sort(), [false, false, true])
  ids.push(...(await tell()))
  while ((await fanOut(db.writer, 10, new Date())).isMore);
  assert.deepEqual(await told(), ids)
})

test('outbox: a node that starts under load leaves the numbers unchanged', async (t) => {
  const { db, tell } = await setStage(t, 0)
  let telling = true
  const others = [1, 2, 3, 4].map(async () => {
    while (telling) await tell()
  })
  for (let n = 0; n < 500; n++) assert.equal(await db.transaction(mendOutbox), false)
  telling = false
  await Promise.all(others)
})
