// The operator's actions at the desk equal those of the commands: organizations, queues, and their audit entries.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import type { DeskDeps } from '../../src/operator/desk/deps.ts'
import { createDesk } from '../../src/operator/desk/desk.ts'
import { openedDesk } from '../support/desk.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import {
  actionsOf,
  assertListed,
  assertRecorded,
  inactiveStates,
  type OperationRow,
  rowOf,
  rowsOf,
} from '../support/operations.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place)
const node = await startNode(place, { env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url } })
const { db } = node.foundation
const desk = await openedDesk(node)

interface Entry {
  action: string
  subject: string
  detail: Record<string, unknown>
  ip: string | null
  organizationId: string | null
}

/** The audit entries, except for the opening of the desk. */
async function entries(): Promise<Entry[]> {
  return await db.query<Entry>(
    `select action, subject, detail, ip, organization_id as "organizationId" from audit_entry
    where actor = 'operator' and ip is not null and action <> 'desk.opened' order by id`,
  )
}

async function entriesOf(organization: string): Promise<Entry[]> {
  return (await entries()).filter(({ organizationId, subject }) =>
    [organizationId, subject].includes(organization),
  )
}

async function pending(name: string): Promise<string> {
  const { id } = await createOrganization(node.foundation, { name, status: 'pending', limits: defaultLimits })
  return id
}

// Runs first, so that every organization is its own.
test('the operator finds, approves, suspends, renames and limits organizations, each with an audit entry', async () => {
  const ids = [await pending('Harbor & Sons'), await pending('Quiet Fox')]
  const [id] = ids as [string, string]
  const list = (query: string) =>
    desk.get<{ organizations: { id: string }[]; counts: Record<string, number> }>(`/organizations${query}`)
  assert.deepEqual(
    (await list('?search=harbor')).organizations.map((row) => row.id),
    [id],
  )
  assert.deepEqual(
    (await list(`?search=${id}`)).organizations.map((row) => row.id),
    [id],
  )
  assert.equal((await list('?status=pending')).counts['pending'], 2)
  assert.equal((await desk.post(`/organizations/${id}/approve`))['status'], 'active')
  assert.deepEqual(
    (await list('?status=active')).organizations.map((row) => row.id),
    [id],
  )
  assert.equal((await desk.post(`/organizations/${id}/suspend`))['status'], 'suspended')
  const patch = (path: string, body: object) => desk.ask(path, { method: 'PATCH', body })
  assert.equal((await patch(`/organizations/${id}`, { name: ' Harbor ' })).body['name'], 'Harbor')
  assert.equal((await patch(`/organizations/${id}`, { name: '  ' })).status, 400)
  assert.equal((await patch(`/organizations/${id}/limits`, { limits: { inboxes: 7 } })).status, 200)
  for (const limits of [{ inboxes: -1 }, { inboxes: 1.5 }, { colours: 3 }, { __proto__x: 1 }])
    assert.equal((await patch(`/organizations/${id}/limits`, { limits })).status, 400)
  assert.equal((await patch(`/organizations/${id}/limits`, { serverKeys: true })).status, 200)
  assert.equal((await patch(`/organizations/${id}/limits`, { serverKeys: 'on' })).status, 400)
  const shown = await desk.get<{
    name: string
    serverKeys: boolean
    limits: { name: string; value: number; used: number }[]
  }>(`/organizations/${id}`)
  assert.deepEqual([shown.name, shown.serverKeys], ['Harbor', true])
  assert.deepEqual(
    shown.limits.find(({ name }) => name === 'inboxes'),
    { name: 'inboxes', value: 7, used: 0 },
  )
  const written = await entries()
  assert.deepEqual(
    written.map(({ action }) => action),
    [
      'organization.approved',
      'organization.suspended',
      'organization.renamed',
      'organization.limits_changed',
      'organization.limits_changed',
    ],
  )
  for (const { ip, organizationId } of written) assert.deepEqual([ip, organizationId], ['127.0.0.1', id])
  assert.deepEqual(
    written.map(({ subject, detail }) => [subject, detail]),
    [
      ['Harbor & Sons', {}],
      ['Harbor & Sons', {}],
      ['Harbor', { from: 'Harbor & Sons' }],
      ['Harbor', { inboxes: 7 }],
      ['Harbor', { serverKeys: true }],
    ],
  )
  const { entries: log } = await desk.get<{ entries: { action: string; organizationName: string | null }[] }>(
    '/audit',
  )
  assert.deepEqual([log[0]!.action, log[0]!.organizationName], ['organization.limits_changed', 'Harbor'])
})

test('a body that repeats a member is refused, and changes nothing', async () => {
  const id = await pending('Harbor')
  const { base, cookie, token } = desk
  const response = await fetch(`${base}/desk/v1/organizations/${id}`, {
    method: 'PATCH',
    body: '{"name":"Quiet Fox","name":"Harbor & Sons"}',
    headers: { 'content-type': 'application/json', origin: base, cookie, 'x-posthorn-token': token },
  })
  const { error, message } = (await response.json()) as Record<string, string>
  assert.deepEqual([response.status, error], [400, 'invalid_json'])
  assert.match(message!, /\/name occurs twice/)
  assert.equal((await desk.get(`/organizations/${id}`))['name'], 'Harbor')
})

test('an approval can grant server keys, and both are logged', async () => {
  const id = await pending('Shop')
  const body = { serverKeys: true }
  const approved = await desk.ask(`/organizations/${id}/approve`, { method: 'POST', body })
  assert.deepEqual([approved.status, approved.body['status']], [200, 'active'])
  assert.equal((await desk.get<{ serverKeys: boolean }>(`/organizations/${id}`)).serverKeys, true)
  assert.deepEqual(
    (await entriesOf(id)).map(({ action, detail }) => [action, detail]),
    [
      ['organization.approved', {}],
      ['organization.limits_changed', { serverKeys: true }],
    ],
  )
  const colours = await desk.ask(`/organizations/${id}/approve`, {
    method: 'POST',
    body: { colours: 3 },
  })
  assert.equal(colours.status, 400)
})

test('an unknown organization, queue or mail is not found', async () => {
  const nobody = '/organizations/00000000-0000-7000-8000-000000000000'
  for (const path of [
    nobody,
    `${nobody}/deletion`,
    '/queues/nowhere.test',
    '/mail/kept/msg_x',
    '/mail/captured/x',
  ])
    assert.equal((await desk.ask(path)).body['error'], 'not_found', path)
  for (const verb of ['approve', 'suspend'])
    assert.equal((await desk.ask(`${nobody}/${verb}`, { method: 'POST' })).status, 404, verb)
  for (const verb of ['resume', 'flush'])
    assert.equal((await desk.ask(`/queues/nowhere.test/${verb}`, { method: 'POST' })).status, 404, verb)
  const body = { confirm: 'nowhere.test' }
  assert.equal((await desk.ask('/queues/nowhere.test/cancel', { method: 'POST', body })).status, 404)
  assert.equal((await desk.ask('/organizations/x')).status, 400)
  assert.equal((await desk.ask('/mail/secret')).status, 400)
})

test('an organization is deleted in steps after its name is typed, and its name is erased', async () => {
  const { api, organizationId } = await node.createCaller()
  const [inbox, other] = [await api.createInbox(), await api.createInbox()]
  const { submission } = await send(api, inbox, [other.address])
  await untilStates(api, submission.id, 'delivered')
  const path = `/organizations/${organizationId}/deletion`
  const { holdings } = await desk.get<{ holdings: Record<string, number> }>(path)
  assert.deepEqual([holdings['inboxes'], holdings['keys'], holdings['submissions']], [2, 1, 1])
  for (const confirm of ['', 'test', organizationId]) {
    const { status, body } = await desk.ask(path, { method: 'POST', body: { confirm } })
    assert.equal(status, 400)
    assert.match(String(body['message']), /cannot be undone/)
  }
  assert.equal((await desk.ask(path, { method: 'POST', body: {} })).status, 400)
  assert.deepEqual(await entriesOf(organizationId), [])
  assert.equal((await desk.ask(path, { method: 'POST', body: { confirm: 'Test' } })).status, 202)
  const state = () => desk.get<{ isGone: boolean; work: { state: string; steps: string[] } }>(path)
  const { work, isGone } = await until('the deletion to end', async () => {
    const now = await state()
    return now.work.state === 'running' ? null : now
  })
  assert.deepEqual([work.state, isGone], ['done', true])
  assert.ok(work.steps.length >= 4)
  assert.equal((await desk.ask(`/organizations/${organizationId}`)).status, 404)
  const [entry] = await entriesOf(organizationId)
  const { action, subject, detail } = entry!
  assert.deepEqual(
    { action, subject, detail },
    { action: 'organization.deleted', subject: organizationId, detail: {} },
  )
})

test('a deletion that ends while it is shown is not shown as done for an existing organization', async (t) => {
  const { organizationId } = await node.createCaller()
  const path = `/organizations/${organizationId}/deletion`
  const keys = new pg.Client(place.connection)
  await keys.connect()
  t.after(() => keys.end())
  await keys.query('begin')
  await keys.query('select from api_key where organization_id = $1 for update', [organizationId])
  await desk.ask(path, { method: 'POST', body: { confirm: 'Test' } })
  await untilLocked(db, { saying: 'delete from api_key' })
  const { looking } = await db.transaction(async (tx) => {
    await tx.query('lock table message in access exclusive mode')
    const looking = desk.get<{ isGone: boolean; work: { state: string } }>(path)
    await untilLocked(db, { saying: 'join message' })
    await keys.query('rollback')
    await until('the deletion to end', async () => {
      const [entry] = await entriesOf(organizationId)
      return entry
    })
    return { looking }
  })
  const { work, isGone } = await looking
  assert.deepEqual([work.state, isGone], ['running', false])
})

test('the operator shows, pauses, flushes, cancels and resumes a queue', async () => {
  const before = (await entries()).length
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '451 4.7.1 later' : null)
  const { api, organizationId } = await node.createCaller()
  const inbox = await api.createInbox()
  const first = await send(api, inbox, ['one@far.test'])
  await untilStates(api, first.submission.id, 'deferred')
  assert.deepEqual(await desk.post('/queues/@relay/pause'), { key: '@relay', state: 'paused' })
  const second = await send(api, inbox, ['two@far.test'])
  const shown = await desk.get<{
    state: string
    waiting: number
    deliveries: {
      email: string
      status: string
      organizationId: string
      response: string | null
      conversation: { isReused: boolean; steps: { command: string; text: string }[] } | null
    }[]
  }>('/queues/@relay')
  assert.deepEqual([shown.state, shown.waiting], ['paused', 2])
  assert.deepEqual(
    shown.deliveries.map(({ email, status }) => [email, status]),
    [
      ['two@far.test', 'pending'],
      ['one@far.test', 'deferred'],
    ],
  )
  assert.match(shown.deliveries[1]!.response!, /later/)
  assert.equal(shown.deliveries[0]!.conversation, null)
  const { isReused, steps } = shown.deliveries[1]!.conversation!
  assert.deepEqual(
    [isReused, ...steps.slice(0, 4).map(({ command }) => command)],
    [false, 'connect', 'EHLO', 'MAIL', 'RCPT'],
  )
  assert.equal(steps[3]!.text, 'later')
  assert.equal(shown.deliveries[0]!.organizationId, organizationId)
  assert.deepEqual(await desk.post('/queues/@relay/flush'), { moved: 1 })
  sink.rule = () => null
  await desk.post('/queues/@relay/resume')
  for (const { submission } of [first, second]) await untilStates(api, submission.id, 'delivered')
  await desk.post('/queues/@relay/pause')
  const third = await send(api, inbox, ['three@far.test'])
  const cancel = (confirm: string) => desk.ask('/queues/@relay/cancel', { method: 'POST', body: { confirm } })
  assert.equal((await cancel('relay')).status, 400)
  assert.deepEqual((await cancel('@relay')).body, { cancelled: 1 })
  await untilStates(api, third.submission.id, 'failed')
  const recorded = (verb: string) => actionsOf(rowOf(`POST /desk/v1/queues/{queue}/${verb}`))
  assert.deepEqual(
    (await entries()).slice(before).map(({ action, subject, detail }) => [[action], subject, detail]),
    [
      [recorded('pause'), '@relay', {}],
      [recorded('flush'), '@relay', { moved: 1 }],
      [recorded('resume'), '@relay', {}],
      [recorded('pause'), '@relay', {}],
      [recorded('cancel'), '@relay', { waiting: 1 }],
    ],
  )
  await desk.post('/queues/@relay/resume')
})

test('typing an organization’s name cancels its waiting mail, and no other’s', async () => {
  const [caller, other] = [await node.createCaller(), await node.createCaller()]
  const first = await send(caller.api, await caller.api.createInbox(), ['first@far.test'])
  await untilStates(caller.api, first.submission.id, 'delivered')
  await desk.post('/queues/@relay/pause')
  const { submission } = await send(caller.api, await caller.api.createInbox(), ['a@far.test'])
  const kept = await send(other.api, await other.api.createInbox(), ['b@far.test'])
  const path = `/organizations/${caller.organizationId}/cancel-queue`
  assert.equal((await desk.ask(path, { method: 'POST', body: { confirm: 'Tes' } })).status, 400)
  assert.deepEqual(await desk.post(path, { confirm: 'Test' }), { cancelled: 1 })
  await untilStates(caller.api, submission.id, 'failed')
  await desk.post('/queues/@relay/resume')
  await untilStates(other.api, kept.submission.id, 'delivered')
  const written = (await entriesOf(caller.organizationId)).map(({ action, organizationId }) => [
    action,
    organizationId,
  ])
  assert.deepEqual(
    written.find(([action]) => action === 'queue.cancelled'),
    ['queue.cancelled', caller.organizationId],
  )
})

const bodies: Record<string, object> = {
  'PATCH /desk/v1/organizations/{organizationId}': { name: 'Quiet Fox' },
  'PATCH /desk/v1/organizations/{organizationId}/limits': { limits: { inboxes: 7 } },
  'POST /desk/v1/organizations/{organizationId}/cancel-queue': { confirm: 'Harbor' },
  'POST /desk/v1/organizations/{organizationId}/deletion': { confirm: 'Harbor' },
}

/** Calls the operation on an organization in this status. Returns its result and the recorded entries. */
async function attempt({ name, recorded }: OperationRow, status: string) {
  const id = await pending('Harbor')
  await db.query('update organization set status = $2 where id = $1', [id, status])
  const [method = '', path = ''] = name.replace('/desk/v1', '').replace('{organizationId}', id).split(' ')
  const body = bodies[name]
  const answer = await desk.ask(path, { method, ...(body && { body }) })
  const isAllowed = answer.status === 200 || answer.status === 202
  const wanted = isAllowed ? actionsOf({ recorded }) : []
  // A deletion is recorded once it ends.
  const actions = await until(`entries of ${name}`, async () => {
    const own = await entriesOf(id)
    return own.length >= wanted.length && own.map(({ action }) => action)
  })
  assert.deepEqual(actions, wanted, `${name}, ${status}`)
  if (!isAllowed) assert.match(String(answer.body['message']), /being deleted/)
  return isAllowed ? 'allowed' : answer.body['error']
}

test('hostile 18: an organization can be changed in every status except while it is deleted', async () => {
  for (const row of rowsOf('/desk/v1')) {
    if (row.outcomes.pending === 'not theirs') continue
    assert.equal(await attempt(row, 'active'), 'allowed', row.name)
    for (const status of inactiveStates)
      assert.equal(await attempt(row, status), row.outcomes[status], `${row.name}, ${status}`)
  }
})

test('hostile 29: the table of operations has every operation of the desk, and no other', async () => {
  const operations: string[] = []
  const desk = createDesk({ log: silentLog, settings: { pagesFolder: '' } } as DeskDeps)
  desk.addHook('onRoute', ({ method, url }) => {
    if (['HEAD', 'OPTIONS'].includes(method as string)) return
    operations.push(`${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`)
  })
  await desk.ready()
  await desk.close()
  assertListed('/desk/v1', operations)
  const ofOrganizations = rowsOf('/desk/v1').filter(({ outcomes }) => outcomes.pending !== 'not theirs')
  assert.deepEqual(
    ofOrganizations.map(({ name }) => name).sort(),
    operations.filter((operation) => operation.includes('/{organizationId}')).sort(),
  )
})

test('hostile 29: opening and closing the desk record the entries of the table of operations', async () => {
  const desk = await assertRecorded(db, 'POST /desk/v1/session', () => openedDesk(node))
  const close = () => desk.ask('/session', { method: 'DELETE' })
  const { status } = await assertRecorded(db, 'DELETE /desk/v1/session', close)
  assert.equal(status, 204)
})
