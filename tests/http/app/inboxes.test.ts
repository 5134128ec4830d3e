// An inbox renamed in the dashboard shows its new name in the From field of the next mail.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { OrganizationId } from '../../../src/base/ids.ts'
import { linkDeveloper } from '../../../src/flow/people/sign-in-link.ts'
import { Browser } from '../../support/browser-session.ts'
import { setStage } from '../stage.ts'

const stage = await setStage({ after })

test('new mail of a renamed inbox has the new name, and sent mail keeps the former one', async () => {
  const { organizationId, api } = await stage.createCaller()
  const inbox = await api.want<{ id: string; address: string }>('/v1/inboxes', {
    method: 'POST',
    status: 201,
    body: { localPart: 'ada', displayName: 'Ada' },
  })
  const browser = new Browser(stage.base)
  await browser.signIn(await linkDeveloper(stage, organizationId as OrganizationId))
  const rename = (displayName: unknown, id = inbox.id) =>
    browser.ask('PATCH', `/app/v1/inboxes/${id}`, { displayName })
  const send = async (key: string) => {
    const body = { to: [{ email: 'zoe@far.test' }], subject: 'Hello', text: 'There.' }
    const call = { method: 'POST', status: 202, idempotencyKey: key, body }
    const { message } = await api.want<{ message: { id: string; from: { name: string } } }>(
      `/v1/inboxes/${inbox.id}/messages`,
      call,
    )
    return message
  }
  const before = await send('before-the-rename')
  const renamed = await rename('  Ada Lovelace ')
  assert.deepEqual([renamed.status, renamed.body.displayName], [200, 'Ada Lovelace'])
  const next = await send('after-the-rename')
  assert.deepEqual([before.from.name, next.from.name], ['Ada', 'Ada Lovelace'])
  const kept = await api.want<{ from: { name: string } }>(`/v1/messages/${before.id}`)
  assert.equal(kept.from.name, 'Ada')
  assert.deepEqual(
    await stage.db.query(
      `select subject, detail from audit_entry where organization_id = $1 and action = 'inbox.renamed'`,
      [organizationId],
    ),
    [{ subject: inbox.address, detail: { from: 'Ada', to: 'Ada Lovelace' } }],
  )
  for (const name of ['', ' ', 'A\nB', 'x'.repeat(201), null])
    assert.equal((await rename(name)).status, 400, JSON.stringify(name))
  assert.equal((await rename('Ada', `inb_${'0'.repeat(24)}`)).status, 404)
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  assert.equal((await rename('Ada')).status, 404)
})
