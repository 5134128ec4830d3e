// The database goes away and comes back: what was promised stands, nothing is promised meanwhile, nobody starts anew.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { test } from 'node:test'
import pg from 'pg'
import { Db, DbFault } from '../../src/store/db.ts'
import type { Acceptance, Refusal } from '../support/api.ts'
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
  place.after(() => db.close())
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
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (let round = 0; round < 5; round++) {
    assert.ok((await terminateAll(place)) > 0)
    const key = randomUUID()
    const accepted = await until('an acceptance', async () => {
      return await send(api, inbox, ['someone@far.test'], { key }).catch(() => null)
    })
    await untilStates(api, accepted.submission.id, 'delivered')
    assert.equal(sink.copiesOf(accepted.message.internetMessageId).length, 1)
  }
})

/** A door before the database that a test can shut: what is under way breaks, and nobody gets in. */
class Door {
  #server: Server | null = null
  #port = 0
  readonly #sockets = new Set<Socket>()
  readonly #target: { path: string } | { host: string; port: number }
  readonly #database: URL

  constructor({ connection }: Place) {
    if ('connectionString' in connection) {
      this.#database = new URL(connection.connectionString)
      this.#target = { host: this.#database.hostname, port: Number(this.#database.port || 5432) }
    } else {
      const { host, port, user, database } = connection
      this.#database = new URL(`postgres://${user}@localhost/${database}`)
      this.#target = { path: `${host}/.s.PGSQL.${port}` }
    }
  }

  async open(): Promise<void> {
    this.#server = createServer((near) => {
      const far = connect(this.#target)
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => {})
        one.on('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as { port: number }).port
  }

  async shut(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (!server) return
    for (const socket of this.#sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }

  get url(): string {
    const url = new URL(this.#database)
    url.host = `127.0.0.1:${this.#port}`
    return url.href
  }
}

test('check 87: while the database is out of reach there is 503 and 451, and afterwards everything goes on', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  const env = {
    ...{ POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_DATABASE_URL: door.url },
  }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('steady')
  const raw = (name: string) =>
    Buffer.from(`From: a@far.test\r\nMessage-ID: <${name}@far.test>\r\n\r\nHello.\r\n`)
  const receive = (name: string) =>
    sendMail(node.smtp, { from: 'a@far.test', to: 'steady@inbox.test', raw: raw(name) })
  const ask = (key: string) =>
    api.call<Acceptance & Refusal>(`/v1/inboxes/${inbox.id}/messages`, {
      ...{ method: 'POST', idempotencyKey: key },
      body: { to: [{ email: 'b@far.test' }], subject: 'Test', text: 'Hello.' },
    })
  assert.equal((await receive('before')).outcome, 'accepted')
  // The far side holds the answer to a message until the database is gone: its result is recorded when that is back.
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  sink.rule = async ({ stage }) => (stage === 'message' ? held.then(() => null) : null)
  const onWire = await send(api, inbox, ['wire@far.test'])
  await until('the message to be on the wire', () => sink.open > 0)

  await door.shut()
  release()
  for (let i = 0; i < 3; i++) {
    const refused = await ask(`refused-${i}`)
    assert.deepEqual([refused.status, refused.body.error], [503, 'unavailable'])
    assert.ok(refused.headers.get('retry-after'))
    const { outcome, reply } = await receive(`refused-${i}`)
    assert.deepEqual([outcome, reply.slice(0, 3)], ['refused', '451'])
  }
  await door.open()
  const accepted = await until('an acceptance', async () => {
    const answer = await ask('after-outage')
    return answer.status === 202 ? answer.body : null
  })
  await until('mail to be taken', async () => (await receive('after')).outcome === 'accepted')
  await untilStates(api, accepted.submission.id, 'delivered')
  await untilStates(api, onWire.submission.id, 'delivered')
  assert.ok(sink.copiesOf(onWire.message.internetMessageId).length <= 2)
  const ids = await until('both mails to be filed', async () => {
    const found = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
    return found.length >= 2 ? found.map(({ internetMessageId }) => internetMessageId) : null
  })
  assert.deepEqual(ids, ['<before@far.test>', '<after@far.test>'])
})
