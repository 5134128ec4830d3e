// On a laptop, whose managed domain is not in DNS: its inboxes exchange mail, and each start prints a sign-in link.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDevelopment } from '../../src/cli/welcome.ts'
import { nameOrganization } from '../../src/flow/accounts/organization.ts'
import { findDevelopment, takeSignInLink } from '../../src/flow/people/sign-in-link.ts'
import { makePlace, startNode } from '../support/node.ts'
import { until } from '../support/until.ts'

const node = await startNode(await makePlace({ after }), {
  env: { POSTHORN_MANAGED_DOMAIN: 'inbox.localhost' },
})

interface Received {
  direction: string
  inboundSecurity?: { authentication: { spf: string; dkim: string; dmarc: string } }
}

// Runs first: the start's own organization must be the first one.
test('each start prints a sign-in link, whatever the organization is called by then', async () => {
  const { foundation } = node
  const first = await openDevelopment(foundation)
  const person = await takeSignInLink(foundation, first.signInToken!)
  await nameOrganization(foundation, (await findDevelopment(foundation))!, 'Acme')
  const second = await openDevelopment(foundation)
  assert.deepEqual([typeof first.secret, second.secret], ['string', null])
  assert.equal(await takeSignInLink(foundation, second.signInToken!), person)
})

test('mail between two inboxes of a laptop has a verified signature', async () => {
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
