// Proofs for the three send operations: the refusals of each, and that a retry sends nothing twice.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { Db } from '../../src/postgres/db.ts'
import type { Inbox } from '../support/api.ts'
import type { Use } from '../support/customer-domain.ts'
import { until } from '../support/until.ts'
import type { Answer } from './ask.ts'
import {
  type Caller,
  type CallerOptions,
  largestContentBytes,
  mail,
  makeWorld,
  newKey,
  proveOwn,
  receive,
} from './world.ts'

const world = await makeWorld({ after })
const { prove, place } = world
const db = new Db({ connection: place.connection })
place.after(() => db.close())

/** A caller that may send, and a send of its own. `change` overrides parts of the body. */
interface Ready {
  caller: Caller
  send(change?: object, options?: { idempotencyKey?: string; secret?: string }): Promise<Answer>
}

/** One of the send operations, with its setup. */
interface Way {
  operation: string
  /** `uses`: the capabilities proved for the sender's domain, if it is a customer's domain. */
  ready(options?: CallerOptions & { uses?: Use[] }): Promise<Ready>
  /** The change that sends to two recipients. */
  toTwo: object
}

async function openInbox(caller: Caller, uses: Use[] | undefined): Promise<Inbox> {
  if (!uses) return await caller.api.createInbox()
  const { id: domainId } = await proveOwn(world, caller, uses)
  return await caller.api.want<Inbox>('/v1/inboxes', { method: 'POST', body: { domainId }, status: 201 })
}

function readyFor(caller: Caller, path: string, body: object): Ready {
  return {
    caller,
    send: (change, { idempotencyKey = newKey(), ...options } = {}) =>
      caller.ask('POST', path, { body: { ...body, ...change }, idempotencyKey, ...options }),
  }
}

const two = [{ email: 'someone@far.test' }, { email: 'other@far.test' }]

const message: Way = {
  operation: 'POST /v1/inboxes/{inboxId}/messages',
  ready: async (options = {}) => {
    const caller = await world.createCaller(options)
    const { id } = await openInbox(caller, options.uses)
    return readyFor(caller, `/v1/inboxes/${id}/messages`, mail)
  },
  toTwo: { to: two },
}

const reply: Way = {
  operation: 'POST /v1/threads/{threadId}/replies',
  ready: async (options = {}) => {
    const caller = await world.createCaller(options)
    const inbox = await openInbox(caller, options.uses)
    const raw = 'From: someone@far.test\nCc: other@far.test\nSubject: Hello\n\nThere.\n'
    const { id, threadId } = await receive(world, caller, inbox, raw)
    return readyFor(caller, `/v1/threads/${threadId}/replies`, { targetMessageId: id, text: 'Yes' })
  },
  toTwo: { replyAll: true },
}

const send: Way = {
  operation: 'POST /v1/send',
  ready: async (options = {}) => {
    const caller = await world.createCaller(options)
    const { domain } = await proveOwn(world, caller, options.uses ?? ['outbound'])
    return readyFor(caller, '/v1/send', { ...mail, from: { email: `x@${domain}` } })
  },
  toTwo: { to: two },
}

const ways = [message, reply, send]
const tooLarge = { text: 'x'.repeat(largestContentBytes + 1) }

for (const { operation, ready, toTwo } of ways) {
  prove(operation, 202, null, 'new; again with the same key', async () => {
    const { send } = await ready()
    const idempotencyKey = newKey()
    const answers = [await send({}, { idempotencyKey }), await send({}, { idempotencyKey })]
    assert.deepEqual(
      answers.map(({ body }) => body!['replayed']),
      [false, true],
    )
    const ids = answers.map(({ body }) => body!['id'] ?? (body!['submission'] as { id: string }).id)
    assert.equal(ids[0], ids[1])
    return answers
  })

  prove(operation, 202, null, 'again, though by now nothing would be accepted', async () => {
    const { send, caller } = await ready({ limits: { messagesPerDay: 1 } })
    const idempotencyKey = newKey()
    const answers = [await send({}, { idempotencyKey })]
    const body = { email: 'someone@far.test' }
    await caller.api.want('/v1/suppressions', { method: 'POST', body, status: 201 })
    answers.push(await send({}, { idempotencyKey }))
    return answers
  })

  prove(operation, 403, 'marketing_not_available', 'its purpose is marketing', async () =>
    (await ready()).send({ purpose: 'marketing' }),
  )

  prove(operation, 403, 'recipient_domain_not_allowed', 'a key for other recipients', async () => {
    const { send, caller } = await ready()
    return await send({}, await caller.createKey({ allowedRecipientDomains: ['near.test'] }))
  })

  prove(
    operation,
    403,
    'recipient_not_confirmed',
    'a key that leaves new recipients to a person',
    async () => {
      const { send, caller } = await ready()
      return await send(toTwo, await caller.createKey({ confirmNewRecipients: true }))
    },
  )

  prove(operation, 403, 'sender_not_allowed', 'from a domain that is not proved for sending', async () =>
    (await ready({ uses: ['inbound'] })).send(),
  )

  // Policy is reported before other faults, and excess size before a used-up day.
  prove(
    operation,
    403,
    'marketing_not_available',
    'its purpose is marketing, and it is too large',
    async () => (await ready()).send({ ...tooLarge, purpose: 'marketing' }),
  )

  prove(operation, 403, 'recipient_domain_not_allowed', 'for others, and it is too large', async () => {
    const { send, caller } = await ready()
    return await send(tooLarge, await caller.createKey({ allowedRecipientDomains: ['near.test'] }))
  })

  prove(operation, 403, 'sender_not_allowed', 'not proved, and it is too large', async () =>
    (await ready({ uses: ['inbound'] })).send(tooLarge),
  )

  prove(operation, 413, 'message_too_large', 'and the day is used up', async () => {
    const { send } = await ready({ limits: { messagesPerDay: 1 } })
    assert.equal((await send()).status, 202)
    return await send(tooLarge)
  })

  prove(operation, 409, 'idempotency_key_reused', 'same key, other request', async () => {
    const { send } = await ready()
    const idempotencyKey = newKey()
    assert.equal((await send({}, { idempotencyKey })).status, 202)
    return await send({ text: 'Other' }, { idempotencyKey })
  })

  prove(operation, 409, 'idempotency_in_progress', 'the first still runs after five seconds', async () => {
    const answer = (await raced()).get(operation)!
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]$/)
    return answer
  })

  prove(operation, 413, 'message_too_large', 'one byte of content too many', async () => {
    const { send } = await ready()
    assert.equal((await send({ text: 'x'.repeat(largestContentBytes) })).status, 202)
    return await send({ text: 'x'.repeat(largestContentBytes + 1) })
  })

  prove(operation, 413, 'too_many_recipients', 'one recipient too many', async () => {
    const { send } = await ready({ limits: { recipientsPerMessage: 1 } })
    assert.equal((await send()).status, 202)
    return await send(toTwo)
  })

  prove(operation, 422, 'all_recipients_suppressed', 'its only recipient is suppressed', async () => {
    const { send, caller } = await ready()
    const body = { email: 'SOMEONE@far.test' }
    await caller.api.want('/v1/suppressions', { method: 'POST', body, status: 201 })
    return await send()
  })

  prove(operation, 429, 'send_limit_exceeded', 'the minute, the day, its recipients', async () => {
    const answers: Answer[] = []
    for (const [limit, longestSeconds] of [
      ['messagesPerMinute', 60],
      ['messagesPerDay', 86_400],
      ['recipientsPerDay', 86_400],
    ] as const) {
      const { send } = await ready({ limits: { [limit]: 1 } })
      assert.equal((await send()).status, 202)
      const answer = await send()
      const seconds = Number(answer.headers.get('retry-after'))
      assert.ok(seconds <= longestSeconds)
      assert.equal(answer.headers.get('send-limit'), `"${limit}";q=1;w=${longestSeconds};t=${seconds}`)
      assert.ok(String(answer.body?.['message']).startsWith(`This message exceeds ${limit}: at most 1 `))
      assert.match(String(answer.body?.['message']), new RegExp(` Try again in ${seconds} seconds\\.$`))
      answers.push(answer)
    }
    return answers
  })
}

for (const { operation, ready } of [message, send])
  prove(operation, 403, 'send_mode_reply_only', 'a key that may only reply', async () => {
    const { send, caller } = await ready()
    return await send({}, await caller.createKey({ sendMode: 'reply_only' }))
  })

for (const { operation, ready } of [message, reply])
  prove(operation, 410, 'idempotency_result_expired', 'the message of its key was deleted', async () => {
    const { send, caller } = await ready()
    const idempotencyKey = newKey()
    const accepted = await send({}, { idempotencyKey })
    const { id } = accepted.body!['message'] as { id: string }
    await until('the message to be off the wire and deleted', async () => {
      const { status } = await caller.ask('DELETE', `/v1/messages/${id}`)
      return status === 204
    })
    return [await send({}, { idempotencyKey }), await send({ text: 'Other' }, { idempotencyKey })]
  })

prove(reply.operation, 404, 'not_found', 'the target is nowhere, or in another thread', async () => {
  const { send, caller } = await reply.ready()
  const inbox = await caller.api.createInbox()
  const { id } = await receive(world, caller, inbox)
  return [
    await send({ targetMessageId: id }),
    await send({ targetMessageId: 'msg_000000000000000000000000' }),
  ]
})

prove(reply.operation, 202, null, 'a key that may only reply', async () => {
  const { send, caller } = await reply.ready()
  return await send({}, await caller.createKey({ sendMode: 'reply_only' }))
})

prove(send.operation, 403, 'sender_not_allowed', 'managed, a subdomain, another organization’s', async () => {
  const [{ send: post, caller }, other] = [await send.ready(), await world.createCaller()]
  const { address } = await caller.api.createInbox()
  const { domain } = await proveOwn(world, other, ['outbound'])
  const [own] = (await caller.api.want<{ domains: { domain: string }[] }>('/v1/domains')).domains
  const senders = [address, `x@sub.${own!.domain}`, `x@${domain}`]
  return await Promise.all(senders.map((email) => post({ from: { email } })))
})

let racing: Promise<Map<string, Answer>> | undefined

/** Returns, for each operation, the answer to the second of two requests with one key while the first is blocked. */
function raced(): Promise<Map<string, Answer>> {
  return (racing ??= race())
}

async function race(): Promise<Map<string, Answer>> {
  const runners = await Promise.all(ways.map(async (way) => ({ way, ...(await way.ready()) })))
  const organizations = runners.map(({ caller }) => caller.organizationId)
  const begun = await db.transaction(async (tx) => {
    // Accepting a send first locks the organization's usage.
    await tx.query('select from usage where organization_id = any($1) for update', [organizations])
    const pairs = runners.map(({ way, send }) => {
      const idempotencyKey = newKey()
      return { way, pair: [send({}, { idempotencyKey }), send({}, { idempotencyKey })] }
    })
    const refused = pairs.map(({ pair }) => Promise.race(pair))
    return { pairs, refused: await Promise.all(refused) }
  })
  for (const { pair } of begun.pairs) {
    const statuses = (await Promise.all(pair)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [202, 409])
  }
  return new Map(begun.pairs.map(({ way }, i) => [way.operation, begun.refused[i]!]))
}
