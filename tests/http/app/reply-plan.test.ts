// Tests the recipients of a reply, as the page that writes it shows them beforehand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrganizationId } from '../../../src/base/ids.ts'
import { linkDeveloper } from '../../../src/flow/people/sign-in-link.ts'
import { Browser } from '../../support/browser-session.ts'
import { setStage } from '../stage.ts'

test('the planned recipients of a reply equal the actual ones, and only its own callers see them', async (t) => {
  const stage = await setStage(t)
  const { organizationId, api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const header = [
    ...['From: Ada <ada@far.test>', `To: ${inbox.address}, bob@far.test`, 'Cc: eve@far.test'],
    ...['Reply-To: desk@far.test', 'Subject: Dinner'],
  ].join('\n')
  await stage.receive(inbox.address, `${header}\n\nShall we?\n`)
  const [message] = await api.exported(inbox.id)
  const browser = new Browser(stage.base)
  await browser.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const path = `/app/v1/messages/${message!.id}/reply-plan`
  const { status, body } = await browser.ask('GET', path)
  assert.equal(status, 200)
  const addresses = (plan: { to: { email: string }[]; cc: { email: string }[] }) =>
    [plan.to, plan.cc].map((list) => list.map(({ email }) => email).join(' '))
  assert.equal(body.subject, 'Re: Dinner')
  assert.deepEqual(addresses(body.sender), ['desk@far.test', ''])
  assert.deepEqual(addresses(body.all), ['desk@far.test', 'bob@far.test eve@far.test'])
  const sent = await browser.ask(
    'POST',
    `/app/v1/threads/${message!.threadId}/replies`,
    { targetMessageId: message!.id, replyAll: true, text: 'Yes.' },
    { 'idempotency-key': 'reply-plan-test' },
  )
  assert.deepEqual(addresses(sent.body.message), addresses(body.all))
  assert.equal((await new Browser(stage.base).ask('GET', path)).status, 401)
})
