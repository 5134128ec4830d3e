// The statements of an idle node, and work whose wake-up was lost. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { makePlace, send, startNode, urlOf } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

/** Every statement of this process, also `begin`, `commit` and those that prepare a connection. */
const statements: string[] = []
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (this: pg.Client, ...asked: [string | { text: string }]) {
  const [first] = asked
  statements.push(typeof first === 'string' ? first : first.text)
  return Reflect.apply(query, this, asked)
} as typeof query

const place = await makePlace({ after })
const sink = await startSink(place)
const receiver = await startReceiver(place)
const env = {
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
}
const node = await startNode(place, { env })
const startedMs = performance.now()

test('an idle node with all roles sends less than one statement a second', async (t) => {
  await until('the first runs of its loops to end', () => performance.now() - startedMs > 5_000)
  const [fromMs, before] = [performance.now(), statements.length]
  const passedMs = () => performance.now() - fromMs
  await until('fifteen seconds to pass', () => passedMs() > 15_000)
  const sent = statements.slice(before)
  const perSecond = (sent.length * 1000) / passedMs()
  t.diagnostic(`${perSecond.toFixed(2)} statements a second`)
  assert.ok(perSecond < 1, `${perSecond} a second:\n${sent.join('\n')}`)
})

test('a node finds work without a wake-up', async (t) => {
  // The notifications of the other node are lost: its search path finds a function of that name that does nothing.
  await node.foundation.db.query(
    `create function public.pg_notify(text, text) returns void language sql as 'select null::void'`,
  )
  const url = new URL(urlOf(place.connection))
  url.searchParams.set('options', '-c search_path=public,pg_catalog')
  const deaf = await startNode(place, {
    env: { ...env, POSTHORN_DATABASE_URL: url.href },
    roles: ['api', 'mx'],
  })
  const { api } = await deaf.createCaller()
  const inbox = await api.createInbox()
  await api.want('/v1/webhooks', { method: 'POST', status: 201, body: { url: receiver.url('/hook') } })
  const found = async (what: string, isDone: () => boolean) => {
    const fromMs = performance.now()
    await until(what, isDone)
    t.diagnostic(`${what}: after ${Math.round(performance.now() - fromMs)} ms`)
  }
  const typesOf = () => receiver.callsOf('/hook').map(({ body }) => body['type'])

  await send(api, inbox, ['someone@far.test'])
  await found('its accepted mail to be delivered', () => sink.copies.length === 1)
  await found('its event to be announced', () => typesOf().includes('message.sent'))
  const raw = Buffer.from('From: a@far.test\r\nSubject: unheard\r\n\r\nText\r\n')
  const { reply } = await sendMail(deaf.smtp, { from: 'a@far.test', to: inbox.address, raw })
  assert.match(reply, /^250/)
  await found('its received mail to be filed', () => typesOf().includes('message.received'))
})
