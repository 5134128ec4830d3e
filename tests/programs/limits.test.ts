// Limits from outside, under parallel requests: exactly the allowed number is accepted.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Answer, Api, Inbox, Refusal } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import {
  countStatuses,
  deploy,
  makeSender,
  operations,
  type SendAnswer,
  type SendRequest,
  sendBy,
} from '../support/deployment.ts'
import type { CallerOptions } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'

type Limits = NonNullable<Parameters<typeof createCaller>[1]>

const parallel = 50

function send(api: Api, inbox: Inbox, number: number, recipients = 1): Promise<Answer<Refusal>> {
  const to = Array.from({ length: recipients }, (_, index) => ({ email: `r${index}@far.test` }))
  const body = { to, subject: 'Limit', text: 'How many?' }
  const idempotencyKey = `limit-key-${number}`
  return api.call(`/v1/inboxes/${inbox.id}/messages`, { method: 'POST', idempotencyKey, body })
}

/** Refusals carry their code, and `retry-after` in seconds if waiting helps. */
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
    await t.test(`the limit is exact: ${name}`, async () => {
      const { api } = await createCaller(posthorn, limits)
      const inbox = await api.createInbox()
      const numbers = Array.from({ length: parallel }, (_, number) => number)
      const answers = await Promise.all(numbers.map((number) => send(api, inbox, number, recipients)))
      assertOutcome(answers, accepted, 'send_limit_exceeded')
      for (const { status } of answers) assert.ok(status === 202 || status === 429)
      await replaysStand(t, api, inbox, answers, recipients)
    })

  await t.test(
    'a message with one recipient too many for the day is refused, and a smaller one accepted',
    async () => {
      const { api } = await createCaller(posthorn, { recipientsPerDay: 5 })
      const inbox = await api.createInbox()
      assert.equal((await send(api, inbox, 1, 4)).status, 202)
      assert.equal((await send(api, inbox, 2, 2)).status, 429)
      assert.equal((await send(api, inbox, 3, 1)).status, 202)
    },
  )

  await t.test(
    'a message with too many recipients is 413 too_many_recipients, and counts for nothing',
    async () => {
      const { api } = await createCaller(posthorn, { recipientsPerMessage: 3, messagesPerDay: 1 })
      const inbox = await api.createInbox()
      const over = await send(api, inbox, 1, 4)
      assert.deepEqual([over.status, over.body.error], [413, 'too_many_recipients'])
      assert.equal((await send(api, inbox, 2, 3)).status, 202)
    },
  )

  await t.test('exactly the allowed managed starters are made, and deleting returns none', async () => {
    const { api } = await createCaller(posthorn, { managedStarter: 3 })
    const create = () => api.call<Inbox & Refusal>('/v1/inboxes', { method: 'POST', body: {} })
    const answers = await Promise.all(Array.from({ length: parallel }, create))
    assertOutcome(answers, 3, 'managed_allowance_exhausted')
    const made = answers.find(({ status }) => status === 201)!
    await api.want(`/v1/inboxes/${made.body.id}`, { method: 'DELETE', status: 204 })
    assert.equal((await create()).status, 403)
    const { managedStarter } = await api.want<{ managedStarter: object }>('/v1/me')
    assert.deepEqual(managedStarter, { limit: 3, used: 3, remaining: 0 })
  })
})

/** A used-up limit does not affect accepted requests: their keys replay. */
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

const day = 86_400_000

for (const count of [1, 2])
  test(`check 50, 95: limits of volume are exact for every operation, with ${count === 1 ? 'one node' : 'two nodes'}`, async (t) => {
    const deployment = await deploy(t, { nodes: count })
    const { nodes, advance } = deployment
    // The usage from creating a sender is a day old, and no day ends during the test.
    const nextNoon = () => advance(day + day / 2 - (nodes[0]!.foundation.clock.nowMs() % day))
    const flood = async (sender: Awaited<ReturnType<typeof makeSender>>, request: SendRequest = {}) => {
      const apis = nodes.map((node) => node.meet(sender))
      const at = (index: number) => apis[index % apis.length]!
      return await Promise.all(
        Array.from({ length: parallel }, (_, index) =>
          sendBy(at(index >> 1), sender, operations[index % 3]!, request),
        ),
      )
    }
    const refusals = (answers: SendAnswer[]) => answers.filter(({ status }) => status === 429)
    const assertRefused = (answers: SendAnswer[], longestSeconds: number) => {
      for (const { body, headers } of refusals(answers)) {
        assert.equal(body.error, 'send_limit_exceeded')
        const seconds = Number(headers.get('retry-after'))
        assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= longestSeconds, `${seconds} s`)
      }
    }

    await t.test('10 a minute: 10 of 50 pass, and 10 of 50 in the next minute', async () => {
      const sender = await makeSender(deployment, { limits: { messagesPerMinute: 10 } })
      nextNoon()
      for (let minute = 0; minute < 2; minute++) {
        const answers = await flood(sender)
        assert.deepEqual(countStatuses(answers), { 202: 10, 429: 40 })
        assertRefused(answers, 60)
        advance(60_000)
      }
    })

    await t.test('10 of 50 pass for each operation alone', async () => {
      const sender = await makeSender(deployment, { limits: { messagesPerMinute: 10 } })
      nextNoon()
      for (const operation of operations) {
        const apis = nodes.map((node) => node.meet(sender))
        const answers = await Promise.all(
          Array.from({ length: parallel }, (_, index) =>
            sendBy(apis[index % apis.length]!, sender, operation),
          ),
        )
        assert.deepEqual(countStatuses(answers), { 202: 10, 429: 40 }, operation)
        advance(60_000)
      }
    })

    await t.test('10 a day: 10 of 50 pass, and 10 of 50 on the next day', async () => {
      const sender = await makeSender(deployment, { limits: { messagesPerDay: 10 } })
      for (let days = 0; days < 2; days++) {
        nextNoon()
        const answers = await flood(sender)
        assert.deepEqual(countStatuses(answers), { 202: 10, 429: 40 })
        assertRefused(answers, day / 1000)
      }
    })

    await t.test('a message beyond the day’s recipients leaves its room to smaller ones', async () => {
      const limits: CallerOptions['limits'] = { recipientsPerDay: 21 }
      const sender = await makeSender(deployment, { limits })
      nextNoon()
      const apis = nodes.map((node) => node.meet(sender))
      const spread = (recipients: number) =>
        Promise.all(
          Array.from({ length: parallel }, (_, index) =>
            sendBy(apis[index % apis.length]!, sender, index % 4 < 2 ? 'message' : 'send', { recipients }),
          ),
        )
      assert.deepEqual(countStatuses(await spread(22)), { 429: 50 })
      assert.deepEqual(countStatuses(await spread(4)), { 202: 5, 429: 45 })
      assert.deepEqual(countStatuses(await spread(2)), { 429: 50 })
      assert.deepEqual(countStatuses(await spread(1)), { 202: 1, 429: 49 })
    })
  })

test('check 75, 95: the allowance of managed starters is exact over two nodes, and lifelong', async (t) => {
  const { nodes } = await deploy(t, { nodes: 2 })
  const caller = await nodes[0]!.createCaller({ limits: { managedStarter: 3 } })
  const apis = nodes.map((node) => node.meet(caller))
  const openAtBoth = () =>
    Promise.all(
      Array.from({ length: parallel }, (_, index) =>
        apis[index % 2]!.call<Inbox & Refusal>('/v1/inboxes', { method: 'POST', body: {} }),
      ),
    )
  const answers = await openAtBoth()
  assert.deepEqual(countStatuses(answers), { 201: 3, 403: 47 })
  for (const { status, body } of answers) {
    if (status === 403) assert.equal(body.error, 'managed_allowance_exhausted')
    else await apis[1]!.want(`/v1/inboxes/${body.id}`, { method: 'DELETE', status: 204 })
  }
  assert.deepEqual(countStatuses(await openAtBoth()), { 403: 50 })
  const { managedStarter } = await apis[0]!.want<{ managedStarter: object }>('/v1/me')
  assert.deepEqual(managedStarter, { limit: 3, used: 3, remaining: 0 })
})

test('check 72, 75: 50 requests for an inbox with one idempotency key use the allowance once', async (t) => {
  const { nodes } = await deploy(t, { nodes: 2 })
  const caller = await nodes[0]!.createCaller({ limits: { managedStarter: 3 } })
  const apis = nodes.map((node) => node.meet(caller))
  const call = { method: 'POST', body: { displayName: 'Once' }, idempotencyKey: 'inbox-once' }
  const answers = await Promise.all(
    Array.from({ length: parallel }, (_, index) => apis[index % 2]!.call<Inbox>('/v1/inboxes', call)),
  )
  assert.deepEqual(countStatuses(answers), { 201: 50 })
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  const { managedStarter } = await apis[0]!.want<{ managedStarter: { used: number } }>('/v1/me')
  assert.equal(managedStarter.used, 1)
})

test('check 50, 95: an organization’s object limits are exact over two nodes', async (t) => {
  const deployment = await deploy(t, { nodes: 2 })
  const { nodes } = deployment
  const caller = await nodes[0]!.createCaller({
    limits: { inboxes: 4, domains: 2, inboxesPerDomain: 3, webhookEndpoints: 3 },
  })
  const apis = nodes.map((node) => node.meet(caller))
  const domain = await proveDomain(caller.api, deployment.dns, 'numbers.example', ['ownership'])
  const cases: [name: string, path: string, body: (index: number) => object, made: number][] = [
    ['domains', '/v1/domains', (index) => ({ domain: `d${index}.example` }), 1],
    ['inboxes of a domain', '/v1/inboxes', () => ({ domainId: domain.id }), 3],
    ['inboxes', '/v1/inboxes', () => ({}), 1],
    ['webhook endpoints', '/v1/webhooks', (index) => ({ url: `https://hooks.example/${index}` }), 3],
  ]
  for (const [name, path, body, made] of cases)
    await t.test(`${name}: exactly ${made} are made`, async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          apis[index % 2]!.call(path, { method: 'POST', body: body(index) }),
        ),
      )
      assert.deepEqual(countStatuses(answers), { 201: made, 403: 12 - made })
      const codes = answers.flatMap(({ status, body }) => (status === 403 ? body.error : []))
      assert.deepEqual([...new Set(codes)], ['limit_reached'])
    })
})
