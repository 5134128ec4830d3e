// Every operation under /app/v1 in an organization that is pending, suspended or deleting: refused or allowed, by one table.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../../support/until.ts'
import { operationsOf, type PlacedOperation, readDocument } from '../document.ts'
import { setStage } from '../stage.ts'
import { enterDirectly, lastToken, Visitor } from './visitor.ts'

const statuses = ['pending', 'suspended', 'deleting'] as const

/** The operations that each row names, and the states in which they are allowed. */
const table: { operations: string; allowed: readonly string[] }[] = [
  // Of a person, whatever organization they act for.
  {
    operations: `getAccess getSession signUp confirm signIn signInByLink signInByPasskey challengePasskey signOut listSessions
      endSession endOtherSessions askReset previewReset completeReset switchOrganization askAccess
      previewInvitation acceptInvitation renamePerson changePassword listPasskeys beginPasskey createPasskey deletePasskey`,
    allowed: statuses,
  },
  // Reading the organization, and leaving it.
  {
    operations: 'listMembers listMade listKeys listAudit exportAudit removeMember',
    allowed: ['pending', 'suspended'],
  },
  // Of the organization.
  {
    operations: 'renameOrganization changeRole invite withdrawInvitation createKey rotateKey revokeKey',
    allowed: [],
  },
  // Of the API.
  {
    operations: `cancelSubmission changeWebhook createInbox createSuppression createWebhook deleteDomain deleteInbox
      deleteMessage deleteSuppression deleteWebhook downloadAttachment exportInbox getCaptured
      getCapturedSource getDeliveryMetrics getDomain getDomainTraffic getDomainZone getInbox getMessage getMessageHeaders
      getMessagePage getMessageSource getProfile getReplyPlan getSubmission getSubmissionContent getSubmissionLife getThread getUsage getWebhook
      importSuppression listNotedSuppressions listCaptured listComplaints listDomains listInboxes listMessages listSubmissionEvents listSubmissions
      listSuppressions listThreads listWebhookDeliveries listWebhooks registerDomain renameInbox replayWebhookDelivery replyToThread
      rotateDkim rotateWebhookSecret send sendMessage streamEvents testWebhook validateAddress validateAddresses
      verifyDomain`,
    allowed: [],
  },
]
const allowedStates = new Map(
  table.flatMap(({ operations, allowed }) => operations.split(/\s+/).map((name) => [name, allowed] as const)),
)

const stage = await setStage({ after }, { trustedProxies: ['127.0.0.0/8'] })
const operations = operationsOf(await readDocument(stage.base, '/app/openapi.json'))
const uuid = '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'

test('the table names every operation under /app/v1, and no other', () => {
  const named = operations.map(({ operation }) => operation.operationId).sort()
  assert.deepEqual([...allowedStates.keys()].sort(), named)
})

/** Sets the state, and waits until the service knows it. */
async function putInto(owner: Visitor, organizationId: string, status: string): Promise<void> {
  await stage.db.query('update organization set status = $2 where id = $1', [organizationId, status])
  await until('the state to be known', async () => (await owner.reload()).organization?.status !== 'active')
}

/** Rows that only a change of the organization writes; that somebody left is among what is allowed. */
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

/** Asks for the operation as its example does, about what does not exist but for oneself. */
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
  const isRefused = status === 403 && body.error === 'organization_inactive'
  return { isRefused, text: `${operation.operationId}: ${status} ${body?.error ?? ''}` }
}

for (const status of statuses)
  test(`hostile 18: an organization that is ${status}: its members sign in, read and leave, and nothing else is done`, async () => {
    const { organizationId } = await stage.createCaller()
    const isAllowed = ({ operation }: PlacedOperation) =>
      allowedStates.get(operation.operationId)?.includes(status)
    const allowed = operations.filter(isAllowed)
    const staying = await enterDirectly(stage, organizationId)
    // Somebody else for each: some operations end the session.
    const owners = await Promise.all(allowed.map(() => enterDirectly(stage, organizationId)))
    await putInto(staying, organizationId, status)
    const before = await organizationRows(organizationId)
    for (const operation of operations) {
      if (isAllowed(operation)) continue
      const { isRefused, text } = await ask(staying, operation)
      assert.ok(isRefused, text)
    }
    assert.equal(await organizationRows(organizationId), before)
    for (const [index, operation] of allowed.entries()) {
      const { isRefused, text } = await ask(owners[index]!, operation)
      assert.ok(!isRefused, text)
    }
  })

test('hostile 18: an owner of a suspended organization leaves it, and removes nobody else', async () => {
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

test('hostile 18: an invitation of a suspended organization is not accepted until the organization is approved again', async () => {
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
