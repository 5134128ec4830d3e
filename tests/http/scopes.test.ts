// Each operation admits the scope that the specification and its additions name, and refuses every other scope.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { scopes } from '../../src/flow/caller.ts'
import { ask, setStage } from './stage.ts'

const stage = await setStage({ after })

const wanted: Record<string, string[]> = {
  'GET /v1/me': [],
  'POST /v1/validate': ['validation:use'],
  'POST /v1/validate/bulk': ['validation:use'],
  'POST /v1/inboxes': ['mailbox:manage'],
  'GET /v1/inboxes': ['mailbox:read'],
  'GET /v1/inboxes/{inboxId}': ['mailbox:read'],
  'DELETE /v1/inboxes/{inboxId}': ['mailbox:manage'],
  'GET /v1/inboxes/{inboxId}/export': ['mailbox:read'],
  'GET /v1/inboxes/{inboxId}/threads': ['mailbox:read'],
  'GET /v1/inboxes/{inboxId}/messages': ['mailbox:read'],
  'POST /v1/inboxes/{inboxId}/messages': ['mailbox:send'],
  'GET /v1/messages/{messageId}': ['mailbox:read'],
  'GET /v1/messages/{messageId}/source': ['mailbox:read'],
  'GET /v1/messages/{messageId}/headers': ['mailbox:read'],
  'DELETE /v1/messages/{messageId}': ['mailbox:manage'],
  'GET /v1/messages/{messageId}/attachments/{attachmentId}': ['mailbox:read'],
  'GET /v1/threads/{threadId}': ['mailbox:read'],
  'POST /v1/threads/{threadId}/replies': ['mailbox:send'],
  'POST /v1/send': ['delivery:send'],
  'GET /v1/submissions': ['delivery:read'],
  'GET /v1/submissions/{submissionId}': ['delivery:read'],
  'GET /v1/submissions/{submissionId}/events': ['delivery:read'],
  'POST /v1/submissions/{submissionId}/cancel': ['mailbox:send', 'delivery:send'],
  'GET /v1/metrics/delivery': ['delivery:read'],
  'GET /v1/suppressions': ['delivery:read'],
  'POST /v1/suppressions': ['delivery:send'],
  'DELETE /v1/suppressions': ['delivery:send'],
  'GET /v1/complaints': ['delivery:read'],
  'POST /v1/domains': ['domain:manage'],
  'GET /v1/domains': ['domain:manage'],
  'GET /v1/domains/{domainId}': ['domain:manage'],
  'DELETE /v1/domains/{domainId}': ['domain:manage'],
  'POST /v1/domains/{domainId}/verify': ['domain:manage'],
  'POST /v1/domains/{domainId}/rotate-dkim': ['domain:manage'],
  'GET /v1/domains/{domainId}/zone': ['domain:manage'],
  'GET /v1/domains/{domainId}/traffic': ['domain:manage'],
  'POST /v1/webhooks': ['webhook:manage'],
  'GET /v1/webhooks': ['webhook:manage'],
  'GET /v1/webhooks/{webhookId}': ['webhook:manage'],
  'PATCH /v1/webhooks/{webhookId}': ['webhook:manage'],
  'DELETE /v1/webhooks/{webhookId}': ['webhook:manage'],
  'POST /v1/webhooks/{webhookId}/test': ['webhook:manage'],
  'POST /v1/webhooks/{webhookId}/rotate-secret': ['webhook:manage'],
  'GET /v1/webhooks/{webhookId}/deliveries': ['webhook:manage'],
  'POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay': ['webhook:manage'],
  'GET /v1/events': ['webhook:manage', 'mailbox:read'],
}

test('check 69: this table has every operation’s scope', async () => {
  const { body } = await ask(stage, 'GET', '/openapi.json')
  const paths = Object.entries(body['paths'] as Record<string, object>)
  const operations = paths.flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(operations.sort(), Object.keys(wanted).sort())
})

for (const held of scopes)
  test(`check 69: ${held} permits its operations, and no others`, async (t) => {
    const { secret } = await stage.createCaller({ key: { scopes: [held] } })
    for (const [operation, needed] of Object.entries(wanted))
      await t.test(`${held} permits or refuses ${operation}`, async () => {
        const [method = '', path = ''] = operation.split(' ')
        const permitted = needed.length === 0 || held === '*' || needed.includes(held)
        // After the scope check comes validation. This path fails it. If the path has no parameter, the query fails it.
        const target = `${path.replaceAll(/\{\w+\}/g, 'x')}?x=y`
        const { status, body } = await ask(stage, method, target, { secret })
        if (permitted) assert.equal(status, 400, JSON.stringify(body))
        else assert.deepEqual([status, body.error], [403, 'insufficient_scope'])
      })
  })

test('a refused scope says who can make keys with it', async () => {
  const caller = await stage.createCaller({ key: { scopes: ['mailbox:read'] } })
  const refused = async (method: string, path: string) =>
    (await ask(stage, method, path, { secret: caller.secret })).body
  const [send, domains] = [await refused('POST', '/v1/send'), await refused('GET', '/v1/domains')]
  assert.match(
    String(send['message']),
    /delivery:send\. It needs a server key\. .*the operator of this service can grant/,
  )
  assert.match(String(domains['message']), /domain:manage\. Create a key with this scope in the dashboard\./)
})
