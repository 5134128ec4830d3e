// A node keeps accepted mail in memory for its first delivery, without a read; a later read gives the same content.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import pg from 'pg'
import { pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { tearRow } from '../support/torn-rows.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
const dns = await DnsServer.start()
place.after(() => dns.close())
const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url, POSTHORN_DNS: dns.address }
const node = await startNode(place, { env: relay })
const { api } = await node.createCaller()
await proveDomain(api, dns, 'sender.test', ['outbound'])
const client = new pg.Client(place.connection)
await client.connect()
place.after(() => client.end())

const twoRecipients = { to: [{ email: 'ada@far.test', name: 'Ada Lövelace' }, { email: 'ben@far.test' }] }
const words = {
  subject: 'Grüße',
  text: 'One\ttwo  three \r\n.\nFrom here',
  html: `<p>${'  long '.repeat(40)}</p>`,
}

const sends: [name: string, post: () => Promise<{ path: string; body: object }>][] = [
  [
    'from an inbox, with a file',
    async () => {
      const inbox = await api.createInbox('files')
      const content = randomBytes(5_000).toString('base64')
      const attachments = [{ filename: 'ü.bin', contentType: 'application/x-test', content }]
      const body = { ...twoRecipients, ...words, replyTo: { email: 'c@far.test' }, attachments }
      return { path: `/v1/inboxes/${inbox.id}/messages`, body }
    },
  ],
  [
    'through a domain, with further fields',
    async () => {
      const headers = { 'x-entity-ref-id': '1', 'x-campaign-id': '2', 'x-campaign': '3' }
      const from = { email: 'a@sender.test', name: 'A. Sender' }
      return { path: '/v1/send', body: { from, ...twoRecipients, ...words, headers } }
    },
  ],
]

for (const [name, post] of sends)
  test(`a message ${name} leaves straight from memory, and a retry reads back the same bytes`, async () => {
    const { path, body } = await post()
    sink.copies = []
    // Ben's copy leaves at the second attempt, when the mail is no longer in memory.
    sink.rule = ({ stage, command }) =>
      stage === 'rcpt' && command.includes('ben@') && sink.copies.length < 2 ? '450 4.2.1 not now' : null
    await pauseQueue(node.foundation, '@relay', 'paused')
    await api.want(path, { method: 'POST', status: 202, idempotencyKey: randomUUID(), body })
    await client.query('begin; lock table message, send_content, raw in access exclusive mode')
    await pauseQueue(node.foundation, '@relay', 'running')
    const first = await until('the first copy', () => sink.copies[0])
    await client.query('commit')
    sink.rule = () => null
    const second = await until('the second copy', () => {
      node.foundation.clock.advance(60_000)
      return sink.copies[1]
    })
    assert.deepEqual([first.recipient, second.recipient], ['ada@far.test', 'ben@far.test'])
    assert.ok(first.raw.includes('DKIM-Signature'))
    assert.equal(second.raw.toString('latin1'), first.raw.toString('latin1'))
  })

test('a torn page holds back only the message that needs it, and not its queue', async (t) => {
  const { clock, db } = node.foundation
  const inbox = await api.createInbox('torn')
  sink.copies = []
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
  const sent = await Promise.all(
    ['torn', 'sound', 'whole'].map((name) => send(api, inbox, [`${name}@far.test`])),
  )
  for (const { submission } of sent) await untilStates(api, submission.id, 'deferred')
  const [torn, ...others] = sent.map(({ submission }) => submission.id)
  const heal = tearRow(t, db, 's.id as "submissionId"', torn!)
  sink.rule = () => null
  clock.advance(60_000)
  for (const id of others) await untilStates(api, id, 'delivered')
  const states = () =>
    db.query('select status, own_faults from delivery where submission_id = $1 and claim_epoch is null', [
      torn,
    ])
  await until('the torn message to wait', async () => (await states()).length === 1)
  assert.deepEqual(await states(), [{ status: 'deferred', own_faults: 0 }])
  heal()
  await until('the torn message to leave', () => {
    clock.advance(60_000)
    return sink.copies.length === 3
  })
})
