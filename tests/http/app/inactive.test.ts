// Runs every /app/v1 operation in an inactive organization and expects the answers in tests/support/operations.ts.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertListed, inactiveStates, rowOf } from '../../support/operations.ts'
import { until } from '../../support/until.ts'
import { operationsOf, type PlacedOperation, readDocument } from '../document.ts'
import { setStage } from '../stage.ts'
import { enterDirectly, lastToken, Visitor } from './visitor.ts'

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const operations = operationsOf(await readDocument(stage.base, '/app/openapi.json'))
const uuid = '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'

const nameOf = ({ method, path }: PlacedOperation) => `${method} ${path}`

test('the table of operations has every operation under /app/v1, and no other', () => {
  assertListed('/app/v1', operations.map(nameOf))
})

/** Sets the state and waits until the service sees it. */
async function putInto(owner: Visitor, organizationId: string, status: string): Promise<void> {
  await stage.db.query('update organization set status = $2 where id = $1', [organizationId, status])
  await until('the state to be known', async () => (await owner.reload()).organization?.status !== 'active')
}

/** Returns rows that only a change of the organization writes. Members may leave, so their rows are not included. */
async function organizationRows(id: string): Promise<string> {
  const tables = [
    'organization',
    'invitation',
    'api_key',
    'inbox',
    'message',
    'domain',
    'webhook',
    'suppression',
  ]
  const rows = await Promise.all(
    tables.map((table) =>
      stage.db.query(
        `select to_jsonb(t)::text as row from ${table} t
        where ${table === 'organization' ? 'id' : 'organization_id'} = $1 order by 1`,
        [id],
      ),
    ),
  )
  return JSON.stringify(rows)
}

/** Sends the operation's example request. Its ids do not exist, except the caller's own. */
async function ask(owner: Visitor, { operation, method, path }: PlacedOperation) {
  const media = operation.requestBody?.content['application/json']
  const [example] = Object.values(media?.examples ?? {})
  const own = owner.session!.person.id
  const place = path
    .replace('/app/v1', '')
    .replace('{personId}', own)
    .replace(/\{\w+\}/g, uuid)
  const { status, body } = await owner.call(place, {
    method,
    body: example?.value ?? (media ? {} : undefined),
  })
  const outcome = status === 403 && body.error === 'organization_inactive' ? body.error : 'allowed'
  return { outcome, text: `${operation.operationId}: ${status} ${body?.error ?? ''}` }
}

for (const status of inactiveStates)
  test(`hostile 18: members of a ${status} organization can sign in, read and leave, and do nothing else`, async () => {
    const { organizationId } = await stage.createCaller()
    const outcomeOf = (operation: PlacedOperation) => rowOf(nameOf(operation)).outcomes[status]
    const { allowed = [], refused = [] } = Object.groupBy(operations, (operation) =>
      outcomeOf(operation) === 'allowed' ? 'allowed' : 'refused',
    )
    const staying = await enterDirectly(stage, organizationId)
    // Each operation gets its own owner, because some operations end the session.
    const owners = await Promise.all(allowed.map(() => enterDirectly(stage, organizationId)))
    await putInto(staying, organizationId, status)
    const before = await organizationRows(organizationId)
    for (const operation of refused) {
      const { outcome, text } = await ask(staying, operation)
      assert.equal(outcome, outcomeOf(operation), text)
    }
    assert.equal(await organizationRows(organizationId), before)
    for (const [index, operation] of allowed.entries()) {
      const { outcome, text } = await ask(owners[index]!, operation)
      assert.equal(outcome, 'allowed', text)
    }
  })

test('hostile 18: an owner of a suspended organization can leave it, and remove no one else', async () => {
  const { organizationId } = await stage.createCaller()
  const [leaving, staying] = [
    await enterDirectly(stage, organizationId),
    await enterDirectly(stage, organizationId),
  ]
  await putInto(leaving, organizationId, 'suspended')
  const remove = (who: Visitor) => leaving.call(`/members/${who.session!.person.id}`, { method: 'DELETE' })
  assert.equal((await remove(staying)).body.error, 'organization_inactive')
  assert.equal((await remove(leaving)).status, 204)
  assert.equal((await leaving.reload()).organization, null)
})

test('hostile 18: an invitation to a suspended organization is refused until its approval', async () => {
  const { organizationId } = await stage.createCaller()
  const owner = await enterDirectly(stage, organizationId)
  const invited = new Visitor(stage)
  const { email } = await invited.signUp('invited-before@far.test').then(({ person }) => person)
  await owner.want('/invitations', { method: 'POST', status: 201, body: { email, role: 'member' } })
  const token = await lastToken(stage, email)
  await stage.db.query(`update organization set status = 'suspended' where id = $1`, [organizationId])
  assert.equal((await invited.post('/invitations/accept', { token })).body.error, 'organization_inactive')
  await stage.db.query(`update organization set status = 'active' where id = $1`, [organizationId])
  assert.equal((await invited.post('/invitations/accept', { token })).status, 200)
})
