// The connection breaks between a commit and its answer: the write runs again by its ids, and the client learns the outcome.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Db } from '../../src/postgres/db.ts'
import type { Acceptance } from '../support/api.ts'
import { Door } from '../support/door.ts'
import { ExternalServer } from '../support/external-server.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

/** A node that reaches its database through a proxy. */
async function setStage(t: TestContext) {
  const place = await makePlace(t)
  const sink = await startSink(t)
  const door = new Door(place)
  await door.open()
  place.after(() => door.shut())
  const env = {
    POSTHORN_DATABASE_URL: door.url,
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_RETRY_SCHEDULE: '1s',
  }
  const node = await startNode(place, { env })
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox('steady')
  const sendMessage = (subject: string, attachments: object[] = []) =>
    api.call<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: randomUUID(),
      body: { to: [{ email: 'b@far.test' }], subject, text: 'Hello.', attachments },
    })
  const mail = (id: string) => {
    const raw = Buffer.from(`From: a@far.test\r\nMessage-ID: <${id}@far.test>\r\n\r\nHello.\r\n`)
    return sendMail(node.smtp, { from: 'a@far.test', to: 'steady@inbox.test', raw })
  }
  /** Message-IDs of the inbox. */
  const stored = async () => (await api.exported(inbox.id)).map(({ internetMessageId }) => internetMessageId)
  const isOut = async () => (await api.call('/v1/inboxes')).status === 503
  /** Loses the answer to the commit that has this text, and the database with it, until another request has failed. */
  const lose = async <Answer>(text: string, ask: () => Promise<Answer>): Promise<Answer> => {
    const lost = door.loseCommit(text)
    const answer = ask()
    await lost
    await door.shut()
    await until('the outage to be seen', isOut)
    await door.open()
    return await answer
  }
  return { place, door, sink, api, organizationId, sendMessage, mail, stored, lose }
}

type Stage = Awaited<ReturnType<typeof setStage>>

async function assertSentOnce({ api, sink, stored }: Stage, answer: { status: number; body: Acceptance }) {
  assert.equal(answer.status, 202)
  const { message, submission, replayed } = answer.body
  assert.equal(replayed, false)
  await untilStates(api, submission.id, 'delivered')
  assert.equal(sink.copiesOf(message.internetMessageId).length, 1)
  assert.deepEqual(await stored(), [message.internetMessageId])
}

async function assertStored({ stored }: Stage, id: string): Promise<void> {
  const found = await until('the mail to be filed', async () => {
    const ids = await stored()
    return ids.length > 0 ? ids : null
  })
  assert.deepEqual(found, [`<${id}@far.test>`])
}

test('check 72, 85a: a send is answered with 202 if its database is gone right after the commit', async (t) => {
  const stage = await setStage(t)
  await assertSentOnce(stage, await stage.lose('Cut here', () => stage.sendMessage('Cut here')))
})

test('check 72, 85a: the same for a send whose attachments make it a transaction of several statements', async (t) => {
  const stage = await setStage(t)
  const attachment = {
    filename: 'a.txt',
    contentType: 'text/plain',
    content: Buffer.alloc(5_000, 'a').toString('base64'),
  }
  await assertSentOnce(stage, await stage.lose('Cut here', () => stage.sendMessage('Cut here', [attachment])))
})

test('check 28, 85a: a mail is answered with 250 if its database is gone right after the commit', async (t) => {
  const stage = await setStage(t)
  const { outcome, reply } = await stage.lose('<cut-here@far.test>', () => stage.mail('cut-here'))
  assert.equal(outcome, 'accepted', reply)
  await assertStored(stage, 'cut-here')
})

test('check 72, 85a: a commit that goes on after its connection broke is waited for', async (t) => {
  const stage = await setStage(t)
  const { place, door, organizationId, sendMessage } = stage
  const db = new Db({ connection: place.connection, maxConnections: 2 })
  place.after(() => db.close())
  const answer = await db.transaction(async (tx) => {
    await tx.query('select from usage where organization_id = $1 for update', [organizationId])
    const sending = sendMessage('Cut here')
    await untilLocked(db, { saying: 'decide_sends(' })
    await door.shut()
    await door.open()
    await untilLocked(db, { saying: 'decide_sends(', count: 2 })
    return { sending }
  })
  await assertSentOnce(stage, await answer.sending)
})

// A server of its own: the names of standbys are a setting of all its databases.
test('check 72: a repeated request is answered once the standby has the commit that it rests on', async (t) => {
  const server = await ExternalServer.make(t)
  const env = { POSTHORN_DATABASE_URL: await server.start() }
  const node = await startNode(await makePlace(t), { env, roles: ['api'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const ask = () => send(api, inbox, ['b@far.test'], { key: 'the-same-key' })
  const setStandby = async (name: string) => {
    await server.ask(`alter system set synchronous_standby_names = '${name}'`)
    await server.ask('select pg_reload_conf()')
  }
  const first = await ask()
  await setStandby('away')
  let isAnswered = false
  const second = ask().finally(() => (isAnswered = true))
  await until('a commit to wait for the standby', async () => {
    const waiting = `select from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'posthorn'`
    return (await server.ask(waiting)).length > 0
  })
  assert.equal(isAnswered, false)
  await setStandby('')
  const { message, replayed } = await second
  assert.deepEqual([message.id, replayed], [first.message.id, true])
})
