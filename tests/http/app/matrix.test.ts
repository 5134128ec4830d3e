// Calls every dashboard operation without a session, cross-origin, in each role, and on another organization's objects.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Authenticator } from '../../support/authenticator.ts'
import { operationsOf, type PlacedOperation, readDocument } from '../document.ts'
import { type Caller, setStage } from '../stage.ts'
import { enterAs, join, type Session, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const document = await readDocument(stage.base, '/app/openapi.json')
const shared = new Set(
  operationsOf(await readDocument(stage.base)).map(({ path, method }) => `${method} /app${path}`),
)
const nameOf = ({ method, path }: PlacedOperation) => `${method} ${path}`
const all = operationsOf(document)
const own = all.filter((operation) => !shared.has(nameOf(operation)))

/** Operations that need no session. */
const open = [
  ...[
    'GET /access',
    'GET /session',
    'POST /sign-up',
    'POST /confirmations',
    'POST /session',
    'POST /session/link',
  ],
  ...['POST /passkeys/challenge', 'POST /session/passkey', 'POST /resets'],
  ...['POST /resets/preview', 'POST /resets/complete'],
  ...['POST /invitations/preview', 'POST /invitations/accept'],
].map((name) => name.replace(' ', ' /app/v1'))

const uuid = '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'
const nobodys: Ids = { messageId: `msg_${'0'.repeat(24)}`, inboxId: `inb_${'0'.repeat(24)}` }
type Ids = Record<string, string>

interface Side {
  caller: Caller
  owner: Visitor
  ids: Ids
}

/** An organization with an owner, a second member, an invitation, a key and a passkey. */
async function furnish(): Promise<Side> {
  const caller = await stage.createCaller()
  const owner = await enterAs(stage, caller)
  const member = await enterAs(stage, caller, 'member')
  const invitation = await owner.want<{ id: string }>('/invitations', {
    method: 'POST',
    status: 201,
    body: { email: `of-${caller.organizationId}@far.test`, role: 'member' },
  })
  const { key } = await owner.want<{ key: { id: string } }>('/keys', {
    method: 'POST',
    status: 201,
    body: { name: 'K', scopes: ['mailbox:read'] },
  })
  const options = await owner.want<never>('/passkeys/registration', { method: 'POST', body: {} })
  const response = new Authenticator().create(options, stage.base)
  const passkey = await owner.want<{ id: string }>('/passkeys', {
    method: 'POST',
    status: 201,
    body: { name: 'P', response },
  })
  const inbox = await caller.api.createInbox()
  await stage.receive(inbox.address, `From: a@far.test\nTo: ${inbox.address}\nSubject: Hello\n\nThere\n`)
  const [message] = await caller.api.exported(inbox.id)
  const ids = {
    messageId: message!.id,
    inboxId: inbox.id,
    personId: member.session!.person.id,
    invitationId: invitation.id,
    keyId: key.id,
    passkeyId: passkey.id,
    sessionId: member.session!.id,
    organizationId: caller.organizationId,
  }
  return { caller, owner, ids }
}

const [ours, theirs] = [await furnish(), await furnish()]

/** Builds the request from the operation's example. */
function exampleOf({ path, operation }: PlacedOperation, ids: Ids) {
  const media = operation.requestBody?.content['application/json']
  const [example] = Object.values(media?.examples ?? {})
  const body = example?.value ?? (media ? {} : undefined)
  const given =
    body && typeof body === 'object' && 'organizationId' in body
      ? { ...body, organizationId: ids['organizationId'] }
      : body
  return {
    path: path.replace('/app/v1', '').replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? uuid),
    body: given,
  }
}

async function everythingOf({ caller, owner }: Side): Promise<string> {
  const rows: object[] = []
  const { id } = owner.session!.person
  const of: [table: string, condition: string, value: string][] = [
    ...['member', 'invitation', 'api_key', 'audit_entry', 'inbox'].map((table): [string, string, string] => [
      table,
      'organization_id',
      caller.organizationId,
    ]),
    ['organization', 'id', caller.organizationId],
    ...['passkey', 'session'].map((table): [string, string, string] => [table, 'person_id', id]),
    ['person', 'id', id],
  ]
  for (const [table, column, value] of of)
    rows.push(
      await stage.db.query(
        `select to_jsonb(t)::text as row from ${table} t where ${column} = $1 order by 1`,
        [value],
      ),
    )
  return JSON.stringify(rows)
}

test('the document has the dashboard’s own operations, and the API’s', () => {
  assert.ok(own.length >= 35, own.map(nameOf).join('\n'))
  for (const name of open)
    assert.ok(
      own.some((operation) => nameOf(operation) === name),
      name,
    )
  for (const name of shared)
    assert.ok(
      all.some((operation) => nameOf(operation) === name),
      name,
    )
})

for (const operation of all) {
  const name = nameOf(operation)
  const isChange = operation.method !== 'GET'
  if (!open.includes(name))
    test(`${name} without a session is 401`, async () => {
      const { path, body } = exampleOf(operation, ours.ids)
      const { status, body: answer } = await new Visitor(stage).call(path, { method: operation.method, body })
      assert.deepEqual([status, answer.error], [401, 'session_required'])
    })
  if (isChange)
    test(`${name} from another origin, or without the page’s token, is 403 and changes nothing`, async () => {
      const before = await everythingOf(ours)
      const { path, body } = exampleOf(operation, ours.ids)
      const wrong: Record<string, string>[] = [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: '' },
      ]
      if (!open.includes(name))
        wrong.push({ 'x-posthorn-token': '' }, { 'x-posthorn-token': theirs.owner.session!.csrfToken })
      for (const headers of wrong) {
        const { status, body: answer } = await ours.owner.call(path, {
          method: operation.method,
          body,
          headers,
        })
        assert.deepEqual([status, answer.error], [403, 'wrong_origin'], JSON.stringify(headers))
      }
      assert.equal(await everythingOf(ours), before)
    })
}

for (const operation of own.filter(({ path }) => path.includes('{')))
  test(`check 68: ${nameOf(operation)} answers foreign ids like unknown ids`, async () => {
    const before = [await everythingOf(ours), await everythingOf(theirs)]
    const ask = async (ids: Ids) => {
      const { path, body } = exampleOf(operation, ids)
      const answer = await ours.owner.call(path, { method: operation.method, body })
      return { status: answer.status, body: answer.body }
    }
    const [foreign, unknown] = [await ask(theirs.ids), await ask(nobodys)]
    assert.deepEqual(foreign, unknown)
    assert.equal(foreign.status, 404)
    assert.deepEqual([await everythingOf(ours), await everythingOf(theirs)], before)
  })

test('check 68: a person cannot act for an organization they are not in', async () => {
  const body = { organizationId: theirs.caller.organizationId }
  const foreign = await ours.owner.call('/session/organization', { method: 'PUT', body })
  const unknown = await ours.owner.call('/session/organization', {
    method: 'PUT',
    body: { organizationId: uuid },
  })
  assert.deepEqual([foreign.status, foreign.body], [unknown.status, unknown.body])
  assert.equal(foreign.status, 404)
})

test('check 68: no list and no page shows their data', async () => {
  const strings = [...Object.values(theirs.ids), theirs.owner.session!.person.email]
  for (const { path, method } of own.filter(({ path, method }) => method === 'GET' && !path.includes('{'))) {
    if (open.includes(`${method} ${path}`)) continue
    const { body } = await ours.owner.call<unknown>(path.replace('/app/v1', ''))
    const text = JSON.stringify(body)
    for (const string of strings) assert.ok(!text.includes(string), `${path} holds ${string}`)
  }
})

/** Operations on the caller's own account, which a viewer may also change. */
const ofOneself = /\/(?:session|sessions|person|passkeys|organizations)(?:\/|$)|\/members\/\{personId\}$/

test('a viewer changes nothing in the organization, by any operation', async () => {
  const viewer = await enterAs(stage, ours.caller, 'viewer')
  const before = await everythingOf(ours)
  for (const operation of all.filter(({ method }) => method !== 'GET')) {
    const name = nameOf(operation)
    if (open.includes(name) || (ofOneself.test(operation.path) && operation.method !== 'PATCH')) continue
    if (operation.path === '/app/v1/person') continue
    const { path, body } = exampleOf(operation, ours.ids)
    const { status, body: answer } = await viewer.call(path, { method: operation.method, body })
    assert.equal(status, 403, `${name}: ${JSON.stringify(answer)}`)
    assert.ok(['insufficient_scope', 'not_an_owner'].includes(answer.error), answer.error)
  }
  const remove = await viewer.call(`/members/${ours.ids['personId']}`, { method: 'DELETE' })
  assert.equal(remove.body.error, 'not_an_owner')
  assert.equal(await everythingOf(ours), before)
})

test('a person in two organizations has each one’s role in it', async () => {
  const { person } = ours.owner.session!
  await join(stage, theirs.caller, person as never, 'viewer')
  const by = new Visitor(stage)
  await by.signIn(person.email)
  const session = await by.want<Session>('/session')
  assert.equal(session.organizations.length, 2)
  for (const [side, status] of [
    [theirs, 403],
    [ours, 201],
  ] as const) {
    await by.want('/session/organization', {
      method: 'PUT',
      body: { organizationId: side.caller.organizationId },
    })
    assert.equal((await by.post('/inboxes', {})).status, status)
    const { keys } = await by.want<{ keys: { id: string }[] }>('/keys')
    assert.ok(keys.some(({ id }) => id === side.ids['keyId']))
  }
})
