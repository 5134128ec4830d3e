// What an endpoint is told is what the document's webhooks say, to the last property.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { judgeStrictly, readDocument } from '../http/document.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

/** Takes mail, but for one who is not there and one who is to come again. */
const rule: Rule = ({ stage, command }) => {
  if (stage === 'rcpt' && command.includes('nobody')) return '550 5.1.1 no such user'
  return stage === 'rcpt' && command.includes('later') ? '450 4.2.1 come again' : null
}

/** What is brought about here; complaints and scans come with their own tests. */
const told = [
  ...['domain.verified', 'message.bounced', 'message.deferred', 'message.delivered', 'message.failed'],
  ...['message.received', 'message.sent', 'suppression.created', 'webhook.test'],
]

test('check 71, 82: every kind of call has the body that the document describes', async (t) => {
  const place = await makePlace(t)
  const dns = await DnsServer.start()
  place.after(() => dns.close())
  const sink = await startSink(place, { rule })
  const receiver = await startReceiver(t)
  const node = await startNode(place, {
    env: {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_DNS: dns.address,
      POSTHORN_MAIL_HOST: 'mx.posthorn.test',
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { http } = node.app.listening
  const document = await readDocument(`http://${http?.host}:${http?.port}`)
  const { api } = await node.createCaller()
  const { id } = await api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url('/told') },
    status: 201,
  })
  await api.want(`/v1/webhooks/${id}/test`, { method: 'POST', status: 202 })
  const domain = await proveDomain(api, dns, 'told.test', ['outbound'])
  const [ada, ben] = [await api.createInbox('ada'), await api.createInbox('ben')]
  const send = (path: string, more: object) =>
    api.want<{ id: string; submission?: { id: string } }>(path, {
      method: 'POST',
      idempotencyKey: randomUUID(),
      status: 202,
      body: { subject: 'Hello', text: 'T'.repeat(70_000), html: '<p>There</p>', ...more },
    })
  const menu = { filename: 'menu.txt', contentType: 'text/plain', content: 'U291cC4=' }
  await send(`/v1/inboxes/${ada.id}/messages`, {
    to: [{ email: ben.address, name: 'Ben' }],
    attachments: [menu],
  })
  const from = { email: `a@${domain.domain}` }
  await send('/v1/send', { from, to: [{ email: 'nobody@far.test' }], metadata: { a: 1 } })
  const waiting = await send('/v1/send', { from, to: [{ email: 'later@far.test' }] })
  await until('the deferral', () => receiver.calls.some(({ body }) => body.type === 'message.deferred'))
  await api.want(`/v1/submissions/${waiting.id}/cancel`, { method: 'POST' })
  const types = () => [...new Set(receiver.calls.map(({ body }) => body.type))].sort()
  await until('all kinds of calls', () => told.every((type) => types().includes(type)))
  for (const { raw, body, headers } of receiver.calls) {
    const { parameters, requestBody } = document.webhooks[body.type]!.post
    for (const { name } of parameters!) assert.ok(headers[name], name)
    const judged = judgeStrictly(document, requestBody!.content['application/json']!.schema)
    const [isRight, errors] = judged.Errors(JSON.parse(raw))
    assert.ok(isRight, `${body.type} ${JSON.stringify(errors)}\n${raw.slice(0, 3_000)}`)
  }
})
