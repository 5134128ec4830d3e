// Tests the order of checks: of two faults in one request, the earlier is reported; sends.test.ts checks sends alone.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { type Answer, ask, type Request } from './ask.ts'
import type { Operation } from './document.ts'
import { acquire, pathWith, soundRequest, unknownIds } from './sound.ts'
import {
  type Caller,
  holdMessages,
  largestContentBytes,
  mail,
  makeWorld,
  newKey,
  proveOwn,
  receive,
  receiveFiles,
} from './world.ts'

const world = await makeWorld({ after })
const { base, document, sink } = world
const caller = await world.createCaller()
const property = await acquire(world, caller)
const nobodys = unknownIds(property)

const keys = {
  elsewhereAndSpent: await caller.createKey({ allowedIps: ['203.0.113.5'], requestsPerMinute: 0 }),
  pendingAndSpent: await world.createCaller({ status: 'pending', key: { requestsPerMinute: 0 } }),
  pendingAndScopeless: await world.createCaller({ status: 'pending', key: { scopes: [] } }),
  scopeless: await caller.createKey({ scopes: [] }),
  elsewhere: await caller.createKey({ inboxIds: [property.otherInboxId as never] }),
}

const outcome = ({ status, body }: Answer) => [status, body?.['error']]
const documents = ({ refusals }: Operation, code: string) => refusals.some((one) => one.code === code)

/** Adds every fault of shape that the operation can have. */
function misshapen(operation: Operation, request: Request): Request {
  return {
    ...request,
    path: `${request.path}?unknown=1`,
    ...(operation.headers.includes('idempotency-key') && { idempotencyKey: 'x' }),
    ...(request.body !== undefined && { body: '{"' }),
  }
}

function toNobody(operation: Operation, request: Request): Request {
  const bodies: Record<string, object> = {
    createInbox: { domainId: nobodys['domainId'] },
    deleteSuppression: { email: 'nobody@far.test' },
  }
  const body = bodies[operation.id]
  return { ...request, path: pathWith(operation, nobodys), ...(body && { body }) }
}

/**
 * Operations that read the idempotency key only if the API key may use the inbox. The path names the inbox, or nothing
 * does.
 */
const isJudgedByPath = ({ id }: Operation) => ['sendMessage', 'createInbox', 'send'].includes(id)

for (const operation of document.operations)
  test(`check 71: ${operation.name} is judged in order`, async () => {
    const request = await soundRequest(operation, caller, property)
    const broken = misshapen(operation, toNobody(operation, request))
    const told = async (changed: Request) => outcome(await ask(base, changed))
    const by = ({ secret }: { secret: string }) => told({ ...broken, secret })
    const { secret: _, ...keyless } = broken

    assert.deepEqual(await told({ ...keyless, method: 'PUT' }), [404, 'route_not_found'])
    assert.deepEqual(await told(keyless), [401, 'unauthorized'])
    assert.deepEqual(await by(keys.elsewhereAndSpent), [401, 'unauthorized'])
    assert.deepEqual(await by(keys.pendingAndSpent), [429, 'rate_limited'])
    assert.deepEqual(await by(keys.pendingAndScopeless), [403, 'organization_inactive'])
    if (operation.scopes.length > 0) assert.deepEqual(await by(keys.scopeless), [403, 'insufficient_scope'])
    const [status, error] = await by(keys.elsewhere)
    assert.deepEqual([status, /^invalid_/.test(String(error))], [400, true], `not ${error}`)

    if (!documents(operation, 'inbox_not_allowed')) return
    const { secret } = keys.elsewhere
    const unknown = await told({ ...toNobody(operation, request), secret })
    if (isJudgedByPath(operation)) assert.deepEqual(unknown, [403, 'inbox_not_allowed'])
    else if (documents(operation, 'not_found')) assert.deepEqual(unknown, [404, 'not_found'])
    else if (operation.success.status === 204) assert.deepEqual(unknown, [204, undefined])
  })

/** Requests that a restriction of the key refuses, although the state of the resource would refuse them too. */
const restricted: [what: string, state: string, run: (owner: Caller) => Promise<[Answer, Answer]>][] = [
  [
    'deleting an inbox on the wire',
    'delivery_in_progress',
    (owner) => onWire(owner, ({ inbox }) => ['DELETE', `/v1/inboxes/${inbox}`]),
  ],
  [
    'deleting a message on the wire',
    'delivery_in_progress',
    (owner) => onWire(owner, ({ message }) => ['DELETE', `/v1/messages/${message}`]),
  ],
  [
    'cancelling what is on the wire',
    'delivery_in_progress',
    (owner) => onWire(owner, ({ submission }) => ['POST', `/v1/submissions/${submission}/cancel`]),
  ],
  [
    'exporting a deleted inbox',
    'inbox_deleted',
    async (owner) => {
      const { id } = await owner.api.createInbox()
      await owner.api.want(`/v1/inboxes/${id}`, { method: 'DELETE', status: 204 })
      return await both(owner, ['GET', `/v1/inboxes/${id}/export`])
    },
  ],
  [
    'an attachment that waits for its scan',
    'attachment_not_scanned',
    async (owner) => {
      const { paths } = await receiveFiles(world, owner, await owner.api.createInbox(), ['WAIT'])
      return await both(owner, ['GET', paths[0]!])
    },
  ],
  [
    'deleting a domain with inboxes',
    'domain_in_use',
    async (owner) => {
      const { id: domainId } = await proveOwn(world, owner, ['ownership'])
      await owner.api.want('/v1/inboxes', { method: 'POST', body: { domainId }, status: 201 })
      return await both(owner, ['DELETE', `/v1/domains/${domainId}`])
    },
  ],
  [
    'registering a domain that is taken',
    'domain_taken',
    (owner) => both(owner, ['POST', '/v1/domains'], { domain: 'inbox.test' }),
  ],
  [
    'opening an inbox whose address is taken',
    'address_taken',
    (owner) => both(owner, ['POST', '/v1/inboxes'], { localPart: property.inbox.address.split('@')[0] }),
  ],
  [
    'a message that is too large',
    'message_too_large',
    async (owner) => {
      const { id } = await owner.api.createInbox()
      const text = 'x'.repeat(largestContentBytes + 1)
      return await both(owner, ['POST', `/v1/inboxes/${id}/messages`], { ...mail, text })
    },
  ],
  [
    'a reply to one who is suppressed',
    'all_recipients_suppressed',
    async (owner) => {
      const { id, threadId } = await receive(world, owner, await owner.api.createInbox())
      const body = { email: 'someone@far.test' }
      await owner.api.want('/v1/suppressions', { method: 'POST', body, status: 201 })
      const answer = { targetMessageId: id, text: 'Yes' }
      return await both(owner, ['POST', `/v1/threads/${threadId}/replies`], answer)
    },
  ],
  [
    'a send to too many',
    'too_many_recipients',
    async (owner) => {
      const { domain } = await proveOwn(world, owner, ['outbound'])
      const to = Array.from({ length: 4 }, (_, n) => ({ email: `n${n}@far.test` }))
      return await both(owner, ['POST', '/v1/send'], { ...mail, from: { email: `x@${domain}` }, to })
    },
  ],
]

/** Returns the answers to a key for another inbox and to a key that may do everything. */
async function both(
  owner: Caller,
  [method, path]: [method: string, path: string],
  body?: object,
): Promise<[Answer, Answer]> {
  const { id } = await owner.api.createInbox()
  const { secret } = await owner.createKey({ inboxIds: [id as never] })
  const more = { ...(body && { body, idempotencyKey: newKey() }) }
  return [await owner.ask(method, path, { ...more, secret }), await owner.ask(method, path, more)]
}

async function onWire(
  owner: Caller,
  what: (ids: { inbox: string; message: string; submission: string }) => [method: string, path: string],
): Promise<[Answer, Answer]> {
  const { id } = await owner.api.createInbox()
  const { reached, release } = holdMessages(sink)
  try {
    const sent = await owner.api.want<{ message: { id: string }; submission: { id: string } }>(
      `/v1/inboxes/${id}/messages`,
      { method: 'POST', idempotencyKey: newKey(), body: mail, status: 202 },
    )
    await reached
    return await both(owner, what({ inbox: id, message: sent.message.id, submission: sent.submission.id }))
  } finally {
    release()
  }
}

for (const [what, state, run] of restricted)
  test(`check 71: ${what}: a key without permission gets that refusal, not ${state}`, async () => {
    const owner = await world.createCaller({ limits: { recipientsPerMessage: 3 } })
    const [refused, allowed] = await run(owner)
    assert.deepEqual(outcome(refused), [403, 'inbox_not_allowed'])
    assert.equal(allowed.body?.['error'], state)
  })

test('check 71: a send is judged in order, from its key to the limits of the day', async () => {
  const owner = await world.createCaller({ limits: { messagesPerDay: 1, recipientsPerMessage: 1 } })
  const inbox = await owner.api.createInbox()
  const path = `/v1/inboxes/${inbox.id}/messages`
  const used = newKey()
  const told = async (body: object, at = path, idempotencyKey = newKey()) =>
    outcome(await owner.ask('POST', at, { body, idempotencyKey }))
  assert.deepEqual(await told(mail, path, used), [202, undefined])

  const nowhere = '/v1/inboxes/inb_000000000000000000000000/messages'
  const large = { ...mail, text: 'x'.repeat(largestContentBytes + 1) }
  // The order: shape, idempotency key, resource, policy, state, limits.
  assert.deepEqual(await told({ ...mail, unknown: 1 }, nowhere, used), [400, 'invalid_request'])
  assert.deepEqual(await told(mail, nowhere, used), [409, 'idempotency_key_reused'])
  assert.deepEqual(await told({ ...large, purpose: 'marketing' }, nowhere), [404, 'not_found'])
  assert.deepEqual(await told({ ...large, purpose: 'marketing' }), [403, 'marketing_not_available'])
  assert.deepEqual(await told(large), [413, 'message_too_large'])
  assert.deepEqual(await told(mail), [429, 'send_limit_exceeded'])
  // A retry of an accepted request is answered although the limits are used up.
  assert.deepEqual(await told(mail, path, used), [202, undefined])

  const { messages } = await owner.api.want<{ messages: { id: string }[] }>(path)
  await until('the message to be off the wire', async () => {
    const { status } = await owner.ask('DELETE', `/v1/messages/${messages[0]!.id}`)
    return status === 204
  })
  assert.deepEqual(await told(large, nowhere, used), [410, 'idempotency_result_expired'])
})

test('hostile 30: a replay refuses a key that may not send there like a first request', async () => {
  const owner = await world.createCaller()
  const { domain } = await proveOwn(world, owner, ['outbound'])
  const inbox = await owner.api.createInbox()
  const { id, threadId } = await receive(world, owner, inbox)
  const { secret } = await owner.createKey({ inboxIds: [(await owner.api.createInbox()).id as never] })
  const reply = { targetMessageId: id, text: 'Yes' }
  const requests: [path: string, body: object, changed: object][] = [
    [`/v1/inboxes/${inbox.id}/messages`, mail, { ...mail, text: 'Another' }],
    [`/v1/threads/${threadId}/replies`, reply, { ...reply, text: 'No' }],
    ['/v1/send', { ...mail, from: { email: `x@${domain}` } }, { ...mail, from: { email: `y@${domain}` } }],
    ['/v1/inboxes', { localPart: 'replayed' }, { localPart: 'replayed-again' }],
  ]
  for (const [path, body, changed] of requests) {
    const idempotencyKey = newKey()
    const { status } = await owner.ask('POST', path, { body, idempotencyKey })
    for (const repeated of [body, changed])
      assert.deepEqual(
        outcome(await owner.ask('POST', path, { body: repeated, idempotencyKey, secret })),
        [403, 'inbox_not_allowed'],
        path,
      )
    const again = await owner.ask('POST', path, { body, idempotencyKey })
    assert.equal(again.status, status, 'the key that sent it still has its result')
  }
  // A reply in a deleted thread does not even reveal that the thread existed.
  const used = newKey()
  const thread = `/v1/threads/${threadId}/replies`
  assert.equal((await owner.ask('POST', thread, { body: reply, idempotencyKey: used })).status, 202)
  await until('the inbox to be off the wire', async () => {
    return (await owner.ask('DELETE', `/v1/inboxes/${inbox.id}`)).status === 204
  })
  const gone = { body: reply, idempotencyKey: used }
  assert.deepEqual(outcome(await owner.ask('POST', thread, { ...gone, secret })), [404, 'not_found'])
  assert.deepEqual(outcome(await owner.ask('POST', thread, gone)), [410, 'idempotency_result_expired'])
})

test('check 71: opening an inbox is judged in order, from its shape to its address', async () => {
  const owner = await world.createCaller({ limits: { managedStarter: 2 } })
  const used = newKey()
  const told = async (body: object, idempotencyKey = newKey()) =>
    outcome(await owner.ask('POST', '/v1/inboxes', { body, idempotencyKey }))
  assert.deepEqual(await told({ localPart: 'in-order' }, used), [201, undefined])
  assert.deepEqual(await told({ localPart: 'postmaster' }, used), [400, 'reserved_local_part'])
  assert.deepEqual(await told({ domainId: nobodys['domainId'] }, used), [409, 'idempotency_key_reused'])
  assert.deepEqual(await told({ localPart: 'in-order' }), [409, 'address_taken'])
  assert.deepEqual(await told({}), [201, undefined])
  assert.deepEqual(await told({ localPart: 'in-order' }), [403, 'managed_allowance_exhausted'])
  assert.deepEqual(await told({ localPart: 'in-order' }, used), [201, undefined])
})
