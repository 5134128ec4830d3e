// The database goes away and comes back: what was promised stands, nothing is promised meanwhile, nobody starts anew.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { Db, DbFault } from '../../src/store/db.ts'
import type { Message } from '../support/api.ts'
import { makePlace, type Place, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

/** Ends every connection to the database but this one, as a restart does: with a last word, then the end. */
async function terminateAll({ connection }: Place): Promise<number> {
  const client = new pg.Client(connection)
  await client.connect()
  const { rowCount } = await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
  await client.end()
  return rowCount ?? 0
}

test('check 87: a connection that ends in an idle transaction is a fault of that transaction, and of nothing else', async (t) => {
  const place = await makePlace(t)
  const db = new Db({ connection: place.connection })
  t.after(() => db.close())
  const work = db.transaction(async (tx) => {
    await tx.query('select 1')
    await terminateAll(place)
    await tx.query('select 2')
  })
  await assert.rejects(work, (error) => error instanceof DbFault && error.kind === 'lost')
  assert.deepEqual(await db.query('select 3 as three'), [{ three: 3 }])
})

test('check 87: a node whose connections are ended one and all goes on', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const node = await startNode(t, place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (let round = 0; round < 20; round++) {
    assert.ok((await terminateAll(place)) > 0)
    const key = randomUUID()
    const accepted = await until('an acceptance', async () => {
      return await send(api, inbox, ['someone@far.test'], { key }).catch(() => null)
    })
    await untilStates(api, accepted.submission.id, 'delivered')
    assert.equal(sink.copiesOf(accepted.message.internetMessageId).length, 1)
  }
})
