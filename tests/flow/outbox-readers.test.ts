// Nodes read the outbox only for an endpoint, a stream or a search; a new reader misses nothing. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as yieldLoop } from 'node:timers/promises'
import { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { Signal } from '../../src/base/signal.ts'
import { Db, type Tx } from '../../src/postgres/db.ts'
import { announce } from '../../src/store/events/outbox.ts'
import { purgeOutbox } from '../../src/store/events/webhook-deliveries.ts'
import { insertWebhook } from '../../src/store/events/webhooks.ts'
import { DueWork } from '../../src/worker/due-work.ts'
import { createFanOut } from '../../src/worker/fan-out.ts'
import type { Message } from '../support/api.ts'
import { openStream } from '../support/event-source.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { testDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

/** Records every statement that runs through `db` from here on. */
function noteStatements(db: Db): string[] {
  const statements: string[] = []
  const [query, transaction] = [db.query.bind(db), db.transaction.bind(db)]
  db.query = async (text, values) => {
    statements.push(text)
    return await query(text, values)
  }
  db.transaction = (work) =>
    transaction((tx) => {
      const noted: typeof tx.query = (text, values) => {
        statements.push(text)
        return tx.query(text, values)
      }
      return work({ query: noted } as Tx)
    })
  return statements
}

test('outbox: without an endpoint, a stream and a search it is not read, and each starts its own reader', async (t) => {
  const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' }
  const node = await startNode(await makePlace(t), { env })
  const { db } = node.foundation
  const { api, secret } = await node.createCaller()
  const [inbox, other] = [await api.createInbox(), await api.createInbox()]
  const statements = noteStatements(db)
  const count = (...parts: string[]) =>
    statements.filter((text) => parts.some((part) => text.includes(part))).length
  const readers = {
    fanOut: ' fan_out_events(',
    search: 'take_new_messages(',
    stream: 'as "organizationId" from outbox o',
  }
  for (let n = 0; n < 10; n++) await send(api, inbox, [other.address], { text: `number ${n}` })
  const path = `/v1/inboxes/${other.id}/messages`
  const list = async (query: string) =>
    (await api.want<{ messages: Message[] }>(`${path}${query}`)).messages.length
  await until('all to be filed', async () => (await list('')) === 10)
  const polls = () => count('as managed_domain')
  const before = polls()
  await until('polls for due work', () => polls() >= before + 3)
  const [{ rows }] = (await db.query('select count(*) as rows from outbox')) as [{ rows: number }]
  assert.ok(rows >= 10, `${rows} rows`)
  assert.equal(count(...Object.values(readers)), 0)

  const { host, port } = node.app.listening.http!
  const stream = await openStream(t, `http://${host}:${port}`, secret)
  await until('the stream to be read for', () => count(readers.stream) > 0)
  stream.close()
  assert.equal(count(readers.search, readers.fanOut), 0)
  await until('a search to find all', async () => (await list('?q=number')) === 10)
  await send(api, inbox, [other.address], { text: 'a new one' })
  await until('it to be filed', async () => (await list('')) === 11)
  await until('new messages to be looked for', () => count(readers.search) > 0)
  assert.equal(count(readers.fanOut), 0)
  const receiver = await startReceiver(t)
  const url = receiver.url('/hook')
  // The first endpoint also receives the events that were committed while an older transaction of the server was open.
  await until('older transactions to end', async () => {
    const [{ settled }] = (await db.query(
      'select bool_and(xact < pg_snapshot_xmin(pg_current_snapshot())) as settled from outbox',
    )) as [{ settled: boolean }]
    return settled
  })
  const { id } = await api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    status: 201,
    body: { url, eventTypes: ['message.received'] },
  })
  await send(api, inbox, [other.address], { text: 'told' })
  await until('it to be told', () => receiver.calls.length > 0)
  // It receives no older events.
  assert.equal(receiver.calls.length, 1)
  assert.ok(count(readers.fanOut) > 0)
  await api.want(`/v1/webhooks/${id}`, { method: 'PATCH', body: { status: 'disabled' } })
  await api.want(`/v1/webhooks/${id}`, { method: 'DELETE', status: 204 })
  const ended = polls()
  await until('the fan-out to have ended', () => polls() >= ended + 2)
  const passes = count(readers.fanOut)
  await send(api, inbox, [other.address], { text: 'told nobody' })
  const again = polls()
  await until('further polls', () => polls() >= again + 2)
  assert.equal(count(readers.fanOut), passes)
})

test('outbox: an endpoint made first under load gets every event committed after it', async (t) => {
  const db = new Db({ connection: await testDatabase({ after: (end) => t.after(end) }) })
  t.after(() => db.close())
  const organizationId = randomUUIDv7()
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at)
    values ($1, 'Test', 'active', '{}', now(), now())`,
    [organizationId],
  )
  const signal = new Signal()
  const deps = { db, clock: new Clock(), log: silentLog }
  const dueWork = new DueWork({ ...deps, managedDomain: 'inbox.test' })
  const loops = [1, 2].map(() => createFanOut({ ...deps, dueWork, signal, onDeliveries: () => {} }))
  dueWork.start()
  t.after(() => dueWork.stop())
  for (const loop of loops) loop.start()
  t.after(() => Promise.all(loops.map((loop) => loop.stop())))
  /** For each fact, the number of endpoints that existed when its transaction began. */
  const facts: { id: string; made: number }[] = []
  let [made, isTelling] = [0, true]
  const tellers = [0, 3, 10, 40].map(async (yields) => {
    while (isTelling) {
      const id = randomUUIDv7()
      let known = 0
      await db.transaction(async (tx) => {
        const items = [{ id, type: 'suppression.created' as const }]
        await announce(tx, { organizationId, at: new Date(), items })
        for (let n = 0; n < yields; n++) await yieldLoop()
        known = made
      })
      facts.push({ id, made: known })
      signal.wake()
    }
  })
  for (let round = 1; round <= 6; round++) {
    const webhook = `whk_${round}`
    const at = new Date()
    const row = {
      organizationId,
      url: '',
      eventTypes: null,
      description: null,
      status: 'active',
      createdAt: at,
    }
    await db.transaction((tx) =>
      insertWebhook(tx, { ...row, id: webhook, updatedAt: at } as never, Buffer.alloc(0)),
    )
    made = round
    const length = facts.length
    await until('facts after it', () => facts.length > length + 20)
    const due = facts.filter((fact) => fact.made === round).map(({ id }) => id)
    const told = async () => {
      const sql = `select item->>'id' as id from webhook_delivery where webhook_id = $1`
      return (await db.query<{ id: string }>(sql, [webhook])).map(({ id }) => id)
    }
    await until('all of them to be told', async () => {
      const ids = new Set(await told())
      return due.every((id) => ids.has(id))
    })
    const ids = await told()
    assert.equal(new Set(ids).size, ids.length, 'each once')
    await db.query(`update webhook set status = 'deleted'`)
    const passed = facts.length
    await until('facts that nobody is told of', () => facts.length > passed + 20)
  }
  isTelling = false
  await Promise.all(tellers)
})

test('outbox: unread events are dropped after their time, and kept for a reader', async (t) => {
  const db = new Db({ connection: await testDatabase({ after: (end) => t.after(end) }) })
  t.after(() => db.close())
  const organizationId = randomUUIDv7()
  const day = 86_400_000
  const now = Date.now()
  const tell = (daysAgo: number) =>
    db.transaction((tx) =>
      announce(tx, {
        organizationId,
        at: new Date(now - daysAgo * day),
        items: [{ id: randomUUIDv7(), type: 'suppression.created' }],
      }),
    )
  const purge = () =>
    db.transaction((tx) => purgeOutbox(tx, new Date(now - 7 * day), new Date(now - 30 * day), 100))
  await db.query(
    `insert into organization (id, name, status, limits, created_at, updated_at)
    values ($1, 'Test', 'active', '{}', now(), now())`,
    [organizationId],
  )
  await tell(8)
  await tell(6)
  assert.deepEqual([await purge(), await purge()], [1, 0])
  await db.query(
    `insert into webhook (id, organization_id, url, status, sealed_secret, created_at, updated_at)
    values ('whk_1', $1, '', 'active', '', now(), now())`,
    [organizationId],
  )
  await db.query('delete from outbox')
  await tell(31)
  await tell(8)
  assert.equal(await purge(), 1)
  await db.query(`update webhook set status = 'deleted'`)
  assert.equal(await purge(), 1)
  await tell(8)
  await db.query(
    `insert into searched_inbox (inbox_id, organization_id, until_seq, newest_id, used_at) values ('i', $1, 0, '', now())`,
    [organizationId],
  )
  assert.equal(await purge(), 0)
})
