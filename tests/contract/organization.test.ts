// Proofs for what belongs to the whole organization: domains, webhooks, the stream, suppressions, submissions.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, get } from 'node:http'
import { after } from 'node:test'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { until } from '../support/until.ts'
import type { Answer } from './ask.ts'
import { type Caller, mail, makeWorld, newKey, proveOwn } from './world.ts'

const world = await makeWorld({ after })
const { prove, receiver, dns } = world

const register = 'POST /v1/domains'

prove(register, 201, null, 'new; one’s own again, however it is written', async () => {
  const caller = await world.createCaller({ limits: { domains: 1 } })
  const names = ['bücher.example', ' XN--bcher-kva.Example. ']
  const answers = []
  for (const domain of names) answers.push(await caller.ask('POST', '/v1/domains', { body: { domain } }))
  assert.deepEqual(
    answers.map(({ body }) => body!['domain']),
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  )
  assert.equal(answers[0]!.body!['id'], answers[1]!.body!['id'])
  return answers
})
prove(register, 403, 'limit_reached', 'the organization has as many as it may', async () => {
  const caller = await world.createCaller({ limits: { domains: 1 } })
  await registerDomain(caller.api, 'first.example')
  return await caller.ask('POST', '/v1/domains', { body: { domain: 'second.example' } })
})
prove(register, 409, 'domain_taken', 'proved by another; managed, or under it', async () => {
  const [caller, other] = [await world.createCaller(), await world.createCaller()]
  await proveDomain(other.api, dns, 'proved.example', ['ownership'])
  const names = ['proved.example', 'inbox.test', 'sub.inbox.test']
  return await Promise.all(names.map((domain) => caller.ask('POST', '/v1/domains', { body: { domain } })))
})

prove('DELETE /v1/domains/{domainId}', 409, 'domain_in_use', 'an inbox is on it', async () => {
  const caller = await world.createCaller()
  const { id: domainId } = await proveOwn(world, caller, ['ownership'])
  await caller.api.want('/v1/inboxes', { method: 'POST', body: { domainId }, status: 201 })
  return await caller.ask('DELETE', `/v1/domains/${domainId}`)
})

prove('POST /v1/domains/{domainId}/verify', 200, null, 'receiving alone is proved', async () => {
  const caller = await world.createCaller()
  const { id } = await proveDomain(caller.api, dns, 'receives.example', ['inbound'])
  const answer = await caller.ask('POST', `/v1/domains/${id}/verify`)
  const { outbound, inbound } = answer.body!['capabilities'] as Record<string, { status: string }>
  assert.deepEqual([outbound!.status, inbound!.status], ['pending', 'verified'])
  return answer
})

prove('POST /v1/webhooks', 403, 'limit_reached', 'the organization has as many as it may', async () => {
  const caller = await world.createCaller({ limits: { webhookEndpoints: 1 } })
  const make = () => caller.ask('POST', '/v1/webhooks', { body: { url: receiver.url() } })
  assert.equal((await make()).status, 201)
  return await make()
})

/** Asks while a call of the webhook waits for its answer. */
async function askWhileCalled(ask: (caller: Caller, path: string) => Promise<Answer>): Promise<Answer> {
  const caller = await world.createCaller()
  const place = `/held-${newKey()}`
  const held: (() => void)[] = []
  receiver.answer(place, (response) => void held.push(() => response.writeHead(204).end()))
  const { id } = await caller.api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url(place) },
    status: 201,
  })
  const path = `/v1/webhooks/${id}`
  await caller.api.want(`${path}/test`, { method: 'POST', status: 202 })
  try {
    await until('the call', () => receiver.callsOf(place).length > 0)
    return await ask(caller, path)
  } finally {
    for (const release of held) release()
  }
}

const deleting = 'DELETE /v1/webhooks/{webhookId}'

prove(deleting, 409, 'delivery_in_progress', 'a call of it is on the wire', () =>
  askWhileCalled((caller, path) => caller.ask('DELETE', path)),
)
prove(deleting, 204, null, 'disabled while a call of it is on the wire', () =>
  askWhileCalled(async (caller, path) => {
    await caller.api.want(path, { method: 'PATCH', body: { status: 'disabled' } })
    return await caller.ask('DELETE', path)
  }),
)
prove(deleting, 204, null, 'called before', async () => {
  const caller = await world.createCaller()
  const { id } = await caller.api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: receiver.url('/called') },
    status: 201,
  })
  await caller.api.want(`/v1/webhooks/${id}/test`, { method: 'POST', status: 202 })
  const list = `/v1/webhooks/${id}/deliveries`
  await until('the call to be recorded', async () => {
    const { deliveries } = await caller.api.want<{ deliveries: { status: string }[] }>(list)
    return deliveries[0]?.status === 'succeeded'
  })
  return await caller.ask('DELETE', `/v1/webhooks/${id}`)
})

/** Opens streams, each over a connection of its own, until one is refused; answers what ends them. */
async function openAll(secret: string): Promise<() => void> {
  const requests: ClientRequest[] = []
  const open = async () => {
    const asked = get(`${world.base}/v1/events`, { agent: false, headers: { 'x-api-key': secret } })
    requests.push(asked)
    const [response] = await once(asked, 'response')
    // Ending them is how the readers go.
    asked.on('error', () => {})
    response.on('error', () => {})
    return response.statusCode as number
  }
  for (let isRefused = false; !isRefused; ) {
    const statuses = await Promise.all(Array.from({ length: 50 }, open))
    isRefused = statuses.includes(403)
  }
  return () => {
    for (const asked of requests) asked.destroy()
  }
}

prove('GET /v1/events', 403, 'limit_reached', 'as many streams as an organization may have', async () => {
  const caller = await world.createCaller()
  const end = await openAll(caller.secret)
  try {
    return await caller.ask('GET', '/v1/events')
  } finally {
    end()
  }
})
prove('GET /v1/events', 200, null, 'from an event that nobody knows', async () => {
  const caller = await world.createCaller()
  const answer = await caller.ask('GET', '/v1/events', { headers: { 'last-event-id': 'unknown' } })
  assert.match(answer.bytes.toString(), /^event: stream\.reset$/m)
  return answer
})

const suppress = 'POST /v1/suppressions'

prove(suppress, 201, null, 'new; there already', async () => {
  const caller = await world.createCaller()
  const add = (email: string) => caller.ask('POST', '/v1/suppressions', { body: { email } })
  const answers = [await add('Nobody@far.test'), await add('nobody@FAR.test')]
  assert.deepEqual(answers[0]!.body, answers[1]!.body)
  return answers
})

prove('POST /v1/submissions/{submissionId}/cancel', 200, null, 'what waits; what is over', async () => {
  const caller = await world.createCaller()
  const inbox = await caller.api.createInbox()
  world.sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  try {
    const { submission } = await caller.api.want<{ submission: { id: string } }>(
      `/v1/inboxes/${inbox.id}/messages`,
      { method: 'POST', idempotencyKey: newKey(), body: mail, status: 202 },
    )
    const path = `/v1/submissions/${submission.id}`
    const first = await until('it to be off the wire', async () => {
      const answer = await caller.ask('POST', `${path}/cancel`)
      return answer.status === 409 ? null : answer
    })
    assert.deepEqual([first.body!['status'], first.body!['failureCode']], ['failed', 'cancelled'])
    return [first, await caller.ask('POST', `${path}/cancel`)]
  } finally {
    world.sink.rule = () => null
  }
})

prove('POST /v1/validate', 200, null, 'deliverable or not', async () => {
  const caller = await world.createCaller()
  dns.set('far.test', { MX: [[10, 'mx.far.test']] })
  dns.set('mx.far.test', { A: ['192.0.2.1'] })
  const judge = (email: string) => caller.ask('POST', '/v1/validate', { body: { email } })
  const answers = [await judge('ada@far.test'), await judge('ada@nowhere.test')]
  assert.deepEqual(
    answers.map(({ body }) => body!['verdict']),
    ['deliverable', 'undeliverable'],
  )
  return answers
})
