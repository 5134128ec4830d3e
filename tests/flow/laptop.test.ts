// On a laptop, whose managed domain is in no DNS, mail between two of its inboxes is judged like any other, and passes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

interface Received {
  direction: string
  inboundSecurity?: { authentication: { spf: string; dkim: string; dmarc: string } }
}

test('mail from one inbox of a laptop to another has a signature that is verified', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_MANAGED_DOMAIN: 'inbox.localhost' } })
  const { api } = await node.createCaller()
  const [ada, ben] = [await api.createInbox('ada'), await api.createInbox('ben')]
  const body = { to: [{ email: ben.address }], subject: 'Hello', text: 'Hello' }
  const sent = await api.call(`/v1/inboxes/${ada.id}/messages`, {
    method: 'POST',
    body,
    idempotencyKey: 'a-laptop',
  })
  assert.equal(sent.status, 202)
  const list = () => api.call<{ messages: Received[] }>(`/v1/inboxes/${ben.id}/messages`)
  await until('it to be there', async () => (await list()).body.messages.length === 1)
  const [received] = (await list()).body.messages
  assert.deepEqual(received!.inboundSecurity!.authentication, { spf: 'none', dkim: 'pass', dmarc: 'none' })
})
