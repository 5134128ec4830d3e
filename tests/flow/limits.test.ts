// Limits from outside, under parallel requests: what is allowed is exactly what gets through.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Answer, Api, Inbox, Refusal } from '../support/api.ts'
import { createCaller, startPosthorn } from '../support/service.ts'

type Limits = NonNullable<Parameters<typeof createCaller>[1]>

const parallel = 50

function send(api: Api, inbox: Inbox, number: number, recipients = 1): Promise<Answer<Refusal>> {
  const to = Array.from({ length: recipients }, (_, index) => ({ email: `r${index}@far.test` }))
  const body = { to, subject: 'Limit', text: 'How many?' }
  const idempotencyKey = `limit-key-${number}`
  return api.call(`/v1/inboxes/${inbox.id}/messages`, { method: 'POST', idempotencyKey, body })
}

/** Refusals come with their code, and where waiting helps with `retry-after` in seconds. */
function assertOutcome(answers: Answer<Refusal>[], accepted: number, code: string): void {
  const refused = answers.filter(({ status }) => status !== 202 && status !== 201)
  assert.equal(answers.length - refused.length, accepted)
  for (const { status, headers, body } of refused) {
    assert.equal(body.error, code)
    if (status === 429) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
}

const volumes: [name: string, limits: Limits, recipients: number, accepted: number][] = [
  ['messages a minute', { messagesPerMinute: 7 }, 1, 7],
  ['messages a day', { messagesPerDay: 11 }, 1, 11],
  ['recipients a day', { recipientsPerDay: 20 }, 3, 6],
]

test('check 50, check 75: limits are exact under 50 parallel requests', async (t) => {
  const posthorn = await startPosthorn(t)

  for (const [name, limits, recipients, accepted] of volumes)
    await t.test(name, async () => {
      const { api } = await createCaller(posthorn, limits)
      const inbox = await api.createInbox()
      const numbers = Array.from({ length: parallel }, (_, number) => number)
      const answers = await Promise.all(numbers.map((number) => send(api, inbox, number, recipients)))
      assertOutcome(answers, accepted, 'send_limit_exceeded')
      for (const { status } of answers) assert.ok(status === 202 || status === 429)
      await replaysStand(t, api, inbox, answers, recipients)
    })

  await t.test('a recipient more than the rest of the day fits not, a smaller message does', async () => {
    const { api } = await createCaller(posthorn, { recipientsPerDay: 5 })
    const inbox = await api.createInbox()
    assert.equal((await send(api, inbox, 1, 4)).status, 202)
    assert.equal((await send(api, inbox, 2, 2)).status, 429)
    assert.equal((await send(api, inbox, 3, 1)).status, 202)
  })

  await t.test('recipients a message: 413 too_many_recipients, and it counts for nothing', async () => {
    const { api } = await createCaller(posthorn, { recipientsPerMessage: 3, messagesPerDay: 1 })
    const inbox = await api.createInbox()
    const over = await send(api, inbox, 1, 4)
    assert.deepEqual([over.status, over.body.error], [413, 'too_many_recipients'])
    assert.equal((await send(api, inbox, 2, 3)).status, 202)
  })

  await t.test(
    'managed starters: exactly as many inboxes as allowed, and deleting gives none back',
    async () => {
      const { api } = await createCaller(posthorn, { managedStarter: 3 })
      const create = () => api.call<Inbox & Refusal>('/v1/inboxes', { method: 'POST', body: {} })
      const answers = await Promise.all(Array.from({ length: parallel }, create))
      assertOutcome(answers, 3, 'managed_allowance_exhausted')
      const made = answers.find(({ status }) => status === 201)!
      await api.want(`/v1/inboxes/${made.body.id}`, { method: 'DELETE', status: 204 })
      assert.equal((await create()).status, 403)
      const { managedStarter } = await api.want<{ managedStarter: object }>('/v1/me')
      assert.deepEqual(managedStarter, { limit: 3, used: 3, remaining: 0 })
    },
  )
})

/** A used-up limit does not touch what was accepted before: its key replays. */
async function replaysStand(
  t: TestContext,
  api: Api,
  inbox: Inbox,
  answers: Answer<Refusal>[],
  recipients: number,
): Promise<void> {
  const number = answers.findIndex(({ status }) => status === 202)
  const replay = await send(api, inbox, number, recipients)
  t.diagnostic(`replay with the limit used up: ${replay.status}`)
  assert.equal(replay.status, 202)
}
