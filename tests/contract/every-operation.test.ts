// Proofs that the document yields for every operation: its success, and the refusals that operations share.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { endKey, newSecret } from '../../src/flow/accounts/key.ts'
import { changeOrganizationStatus } from '../../src/flow/accounts/organization.ts'
import { bodyLimitBytes } from '../../src/http/body/read-json.ts'
import { startNode } from '../support/node.ts'
import { assertListed, assertRecorded, inactiveStates, rowsOf } from '../support/operations.ts'
import { type Answer, ask, type Request } from './ask.ts'
import type { Operation } from './document.ts'
import { acquire, pathWith, soundRequest, unknownIds } from './sound.ts'
import { type Caller, largestContentBytes, makeSurroundings, meetNode, newKey } from './world.ts'

const { env, ...surroundings } = await makeSurroundings({ after })
const { place } = surroundings
const owner = await startNode(place, { env })
const world = { ...surroundings, ...(await meetNode(place, owner)) }
const acquiring = [await world.createCaller(), await world.createCaller()] as const
const property = await acquire(world, acquiring[0])
const sleepersProperty = await acquire(world, acquiring[1])
await owner.stop()

// From here on only the API runs, so every change comes from a request.
const node = await startNode(place, { env, roles: ['api', 'dashboard'] })
const { base, document, prove, createCaller, meet } = await meetNode(place, node)
const { foundation } = node
const [caller, sleeper] = acquiring.map(meet) as [Caller, Caller]

// All waits come before the first test, because the run ends once no test is left to begin.
const revoked = await caller.createKey({})
const expired = await caller.createKey({ expiresInMs: 1_000 })
const elsewhere = await caller.createKey({ allowedIps: ['203.0.113.5'] })
const spent = await caller.createKey({ requestsPerMinute: 0 })
const pending = await createCaller({ status: 'pending' })
const deleting = await createCaller()
await foundation.db.query(`update organization set status = 'deleting' where id = $1`, [
  deleting.organizationId,
])
assert.equal((await ask(base, { method: 'GET', path: '/v1/me', secret: revoked.secret })).status, 200)
await endKey(foundation, revoked.keyId)
const asleep = new Map<string, Request>()
for (const operation of document.operations)
  asleep.set(operation.name, await soundRequest(operation, sleeper, sleepersProperty))
await changeOrganizationStatus(foundation, sleeper.organizationId, 'suspended')
foundation.clock.advance(1_000)

const sound = (operation: Operation): Promise<Request> => soundRequest(operation, caller, property)

/** Returns the answers to requests that must be refused. Asserts that none of them changed anything. */
async function askInVain(requests: Request[]): Promise<Answer[]> {
  const before = await snapshot()
  const answers: Answer[] = []
  for (const request of requests) answers.push(await ask(base, request))
  assert.deepEqual(await snapshot(), before, 'a refused request left something behind')
  return answers
}

/** Returns a digest of every table that holds data of organizations. */
async function snapshot(): Promise<Record<string, string>> {
  tables ??= (
    await foundation.db.query<{ name: string }>(
      `select table_name as name from information_schema.columns
      where table_schema = 'public' and column_name = 'organization_id' order by 1`,
    )
  ).map(({ name }) => name)
  const parts = tables.map(
    (name) =>
      `select '${name}' as name, coalesce(md5(string_agg(t::text, ',' order by t::text)), '') as digest from ${name} t`,
  )
  const rows = await foundation.db.query<{ name: string; digest: string }>(parts.join(' union all '))
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]))
}
let tables: string[] | undefined

const documents = ({ refusals }: Operation, code: string) => refusals.some((one) => one.code === code)
const proveEach = (
  code: string,
  status: number,
  how: string,
  run: (operation: Operation) => Promise<Answer | Answer[]>,
) => {
  for (const operation of document.operations)
    if (documents(operation, code)) prove(operation.name, status, code, how, () => run(operation))
}

for (const operation of document.operations)
  prove(operation.name, operation.success.status, null, 'a sound request', async () => {
    const request = await sound(operation)
    return await assertRecorded(foundation.db, operation.name, () => ask(base, request))
  })

test('the table of operations has every operation of the document, and no other', () => {
  assertListed(
    '/v1',
    document.operations.map(({ name }) => name),
  )
})

test('check 71: no other method of a path answers, and no other path', async () => {
  const paths = new Set(document.operations.map(({ path }) => path))
  for (const path of paths) {
    const known = document.operations.filter((one) => one.path === path)
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
      (method) => !known.some((one) => one.method === method),
    )
    for (const method of methods) {
      const answer = await caller.ask(method, pathWith(known[0]!, property.ids))
      assert.equal(answer.status, 404, `${method} ${path}`)
      assert.equal(answer.body?.['error'], 'route_not_found')
    }
    const beyond = await caller.ask('GET', `${pathWith(known[0]!, property.ids)}/beyond/it`)
    assert.deepEqual([beyond.status, beyond.body?.['error']], [404, 'route_not_found'], path)
  }
})

proveEach('invalid_request', 400, 'an unknown parameter, property or id', async (operation) => {
  const request = await sound(operation)
  const broken = [
    { ...request, path: `${request.path}${request.path.includes('?') ? '&' : '?'}unknown=1` },
    ...operation.pathParameters.map((parameter) => ({
      ...request,
      path: pathWith(operation, { ...property.ids, [parameter]: 'none' }),
    })),
    ...(request.body
      ? [
          { ...request, body: { ...(request.body as object), unknown: 1 } },
          { ...request, body: [request.body] },
          { ...request, body: 'null' },
        ]
      : []),
    ...(operation.queryParameters.includes('limit')
      ? ['0', '101', '1e1', '-1', ''].map((limit) => ({ ...request, path: `${request.path}?limit=${limit}` }))
      : []),
  ]
  return await askInVain(broken)
})

proveEach('invalid_json', 400, 'no JSON, no body, another content type', async (operation) => {
  const request = await sound(operation)
  const { body, ...bodiless } = request
  return await askInVain([
    { ...request, body: '{"' },
    { ...request, body: '' },
    bodiless,
    { ...request, headers: { 'content-type': 'text/plain' } },
    { ...request, headers: { 'content-encoding': 'gzip' } },
  ])
})

proveEach('payload_too_large', 413, 'a body over the limit of the organization', async (operation) => {
  const request = await sound(operation)
  const limitBytes = bodyLimitBytes(largestContentBytes)
  const padded = `${JSON.stringify(request.body)}${' '.repeat(limitBytes)}`
  return await askInVain([{ ...request, body: padded }])
})

proveEach('invalid_cursor', 400, 'a cursor of another list', async (operation) => {
  const request = await sound(operation)
  const other = operation.id === 'listInboxes' ? 'messages' : 'inboxes'
  const path = other === 'inboxes' ? '/v1/inboxes' : `/v1/inboxes/${property.inbox.id}/messages`
  const page = await caller.api.want<{ nextCursor: string }>(`${path}?limit=1`)
  const cursors = ['nonsense', '', page.nextCursor]
  return await askInVain(
    cursors.map((cursor) => ({ ...request, path: `${request.path}?cursor=${encodeURIComponent(cursor)}` })),
  )
})

proveEach('invalid_idempotency_key', 400, 'too short, too long, of other characters', async (operation) => {
  const request = await sound(operation)
  return await askInVain(
    ['', 'short-7', 'x'.repeat(201), 'with space', 'sla/shes1'].map((idempotencyKey) => ({
      ...request,
      idempotencyKey,
    })),
  )
})

proveEach('unauthorized', 401, 'no key, unknown, revoked, expired, another address', async (operation) => {
  const { secret: _, ...keyless } = await sound(operation)
  const secrets = ['nonsense', newSecret(), revoked.secret, expired.secret, elsewhere.secret]
  const answers = await askInVain([keyless, ...secrets.map((secret) => ({ ...keyless, secret }))])
  assert.equal(new Set(answers.map(({ bytes }) => bytes.toString())).size, 1, 'the causes can be told apart')
  return answers
})

proveEach('rate_limited', 429, 'a key without requests left', async (operation) => {
  const [answer] = await askInVain([{ ...(await sound(operation)), secret: spent.secret }])
  const { headers } = answer!
  assert.equal(headers.get('ratelimit-policy'), '"requests";q=0;w=60')
  assert.equal(headers.get('ratelimit'), `"requests";r=0;t=${headers.get('retry-after')}`)
  assert.ok(Number(headers.get('retry-after')) <= 60)
  return answer!
})

for (const { name, outcomes } of rowsOf('/v1'))
  for (const [code, states] of Object.entries(Object.groupBy(inactiveStates, (state) => outcomes[state])))
    prove(name, 403, code, states.join(', '), async () => {
      const request = await sound(document.find(name))
      const requests = {
        pending: { ...request, secret: pending.secret },
        suspended: asleep.get(name)!,
        deleting: { ...request, secret: deleting.secret },
      }
      return await askInVain(states.map((state) => requests[state]))
    })

const everyScope = [...new Set(document.operations.flatMap(({ scopes }) => scopes))]

proveEach('insufficient_scope', 403, 'a key with every other scope', async (operation) => {
  const scopes = everyScope.filter((scope) => !operation.scopes.includes(scope))
  const { secret } = await keyWith(scopes.join(' '), { scopes })
  return await askInVain([{ ...(await sound(operation)), secret }])
})

const keys = new Map<string, Promise<{ secret: string }>>()

function keyWith(name: string, input: Parameters<Caller['createKey']>[0]): Promise<{ secret: string }> {
  if (!keys.has(name)) keys.set(name, caller.createKey(input))
  return keys.get(name)!
}

proveEach('inbox_not_allowed', 403, 'a key for another inbox', async (operation) => {
  const request = await sound(operation)
  const inboxIds = [property.otherInboxId as never]
  const { secret } = await keyWith('another inbox', { inboxIds })
  const filter = operation.queryParameters.includes('inboxId') ? `?inboxId=${property.inbox.id}` : ''
  return await askInVain([{ ...request, path: request.path + filter, secret }])
})

const nobodys = unknownIds(property)

/** Unknown ids outside the path, by operation id. */
const nothings: Record<string, (request: Request) => Request> = {
  createInbox: (request) => ({ ...request, body: { domainId: nobodys['domainId'] } }),
  deleteSuppression: (request) => ({ ...request, body: { email: 'nobody@far.test' } }),
}

proveEach('not_found', 404, 'each id of the request in turn is nobody’s', async (operation) => {
  const request = await sound(operation)
  const other = nothings[operation.id]
  if (other) return await askInVain([other(request)])
  const answers = await askInVain(
    operation.pathParameters.map((name) => ({
      ...request,
      path: pathWith(operation, { ...property.ids, [name]: nobodys[name]! }),
    })),
  )
  // F27: the message names which of several ids does not exist.
  for (const [index, name] of operation.pathParameters.entries()) {
    const kind = name === 'deliveryId' ? 'webhook delivery' : name.replace('Id', '')
    assert.equal(answers[index]!.body?.['message'], `There is no such ${kind}.`)
  }
  return answers
})

test('a retry of a refused request with its idempotency key is not a replay', async () => {
  const idempotencyKey = newKey()
  const request = { ...(await sound(document.find('POST /v1/send'))), idempotencyKey }
  assert.equal((await ask(base, { ...request, secret: spent.secret })).status, 429)
  const answer = await ask(base, request)
  assert.deepEqual([answer.status, answer.body?.['replayed']], [202, false])
})
