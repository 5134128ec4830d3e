// A changed managed domain: the start names its former inboxes, which send nothing and keep their waiting mail.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkInboxes } from '../../src/cli/doctor/checks.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const raw = Buffer.from('From: z@far.test\r\nMessage-ID: <1@far.test>\r\nSubject: Hello\r\n\r\nThere\r\n')

test('start and doctor name the inboxes on a former managed domain, whose mail is refused and withheld', async (t) => {
  const place = await makePlace(t)
  const sink = await startSink(place)
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const before = { ...env, POSTHORN_MANAGED_DOMAIN: 'old.test' }
  const first = await startNode(place, { env: before, roles: ['api', 'mx', 'jobs'] })
  const caller = await first.createCaller()
  const [ada] = [await caller.api.createInbox(), await caller.api.createInbox()]
  assert.equal((await sendMail(first.smtp, { from: 'z@far.test', to: ada.address, raw })).outcome, 'accepted')
  const received = await until('the mail', async () => (await caller.api.exported(ada.id))[0])
  const { submission } = await send(caller.api, ada, ['z@far.test'])
  await first.stop()

  const second = await startNode(place, { env: { ...env, POSTHORN_MANAGED_DOMAIN: 'new.test' } })
  const { db, settings } = second.foundation
  assert.match(second.log(), /2 inboxes on old\.test cannot receive mail: set POSTHORN_MANAGED_DOMAIN/)
  const check = await checkInboxes(db, settings)
  assert.deepEqual([check.status, check.detail], ['failed', 'these receive no mail: 2 on old.test'])
  const api = second.meet(caller)
  const body = { to: [{ email: 'z@far.test' }], subject: 'Hello', text: 'There' }
  const paths: [string, object][] = [
    [`/v1/inboxes/${ada.id}/messages`, body],
    [`/v1/threads/${received.threadId}/replies`, { targetMessageId: received.id, text: 'There' }],
  ]
  for (const [path, sent] of paths) {
    const refused = await api.call(path, { method: 'POST', idempotencyKey: 'refused-1', body: sent })
    assert.deepEqual([refused.status, refused.body.error], [403, 'sender_not_allowed'], path)
    assert.match(refused.body.message, /no longer receives mail for old\.test/)
  }
  await untilStates(api, submission.id, 'deferred')
  assert.equal(sink.copies.length, 0)
  const fresh = await api.createInbox()
  assert.match(fresh.address, /@new\.test$/)
  await second.stop()

  const third = await startNode(place, { env: before })
  third.foundation.clock.advance(120_000)
  await untilStates(third.meet(caller), submission.id, 'delivered')
  assert.match(sink.copies[0]!.from, /^bounce-\w+@old\.test$/)
})
