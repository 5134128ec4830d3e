// Tests delivery metrics and domain traffic over the API: permissions, time windows and figures.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type DomainId, newUuid, type OrganizationId } from '../../src/base/ids.ts'
import { foldMetrics } from '../../src/flow/upkeep/fold-metrics.ts'
import { type DomainState, insertDomain } from '../../src/store/domains/domains.ts'
import { send } from './sending.ts'
import { type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const dayMs = 24 * 3_600_000
// A day that ended during the tests would start new counts.
stage.clock.advance(dayMs - (stage.clock.nowMs() % dayMs))

interface Metrics {
  windowHours: number
  totals: { accepted: number; recipients: number }
  series: { at: string; accepted: number }[]
}

interface Traffic {
  domainId: string
  domain: string
  status: string
  reasons: string[]
  usage: Record<string, number | null>
  limits: Record<string, number>
}

async function addDomain({ organizationId }: Caller, name: string, outbound: DomainState): Promise<string> {
  const at = stage.clock.now()
  const standing = { reasons: [], checkedAt: null, failures: 0, failingSince: null }
  const id = newUuid<DomainId>()
  await stage.db.transaction((tx) =>
    insertDomain(tx, {
      id,
      organizationId: organizationId as OrganizationId,
      name,
      challenge: 'x',
      status: 'verified',
      outbound,
      inbound: 'pending',
      observations: {},
      standing: { ownership: standing, inbound: standing, outbound: { ...standing, reasons: ['No key.'] } },
      checkedAt: at,
      nextCheckAt: null,
      verifiedAt: at,
      createdAt: at,
      updatedAt: at,
    }),
  )
  return id
}

/** Counts the organization's traffic on the managed domain for the named domain, so that this domain has traffic. */
async function moveTraffic({ organizationId }: Caller, name: string): Promise<void> {
  await foldMetrics(stage)
  await stage.db.query(`update metric set name = $2 where organization_id = $1 and kind = 'own'`, [
    organizationId,
    name,
  ])
}

test('metrics: a window has 1 to 720 hours', async (t) => {
  const { api } = await stage.createCaller()
  const cases: [query: string, hours: number | null][] = [
    ['', 24],
    ['?hours=1', 1],
    ['?hours=72', 72],
    ['?hours=73', 73],
    ['?hours=720', 720],
    ...['0', '721', '-1', '1.5', '', 'a', '1e2', '%201', '024', '99999999999'].map(
      (hours): [string, null] => [`?hours=${hours}`, null],
    ),
    ['?hours=1&hours=2', null],
    ['?days=1', null],
  ]
  for (const [query, hours] of cases)
    await t.test(`a window is read or refused: ${query || 'none'}`, async () => {
      const { status, body } = await api.call<Metrics & { error: string }>(`/v1/metrics/delivery${query}`)
      if (hours === null) return assert.deepEqual([status, body.error], [400, 'invalid_request'])
      assert.equal(status, 200)
      assert.equal(body.windowHours, hours)
      const days = Math.ceil(hours / 24)
      const most = hours > 72 ? days + 1 : hours
      assert.ok(body.series.length <= most && body.series.length >= (hours > 72 ? days : hours))
    })
})

test('metrics: a key needs the scope, and must not be restricted to inboxes', async () => {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const cases: [key: object, code: string][] = [
    [{ scopes: ['mailbox:read'] }, 'insufficient_scope'],
    [{ scopes: ['delivery:read', 'domain:manage'], inboxIds: [inbox.id] }, 'inbox_not_allowed'],
  ]
  const domainId = await addDomain(caller, 'read.example', 'verified')
  for (const [key, code] of cases) {
    const { api } = await caller.createKey(key)
    for (const path of ['/v1/metrics/delivery', `/v1/domains/${domainId}/traffic`]) {
      const { status, body } = await api.call(path)
      assert.deepEqual([status, body.error], [403, code], path)
    }
  }
})

test('metrics: one organization sees no numbers of another', async () => {
  const [one, other] = [await stage.createCaller(), await stage.createCaller()]
  await send(one.api, await one.api.createInbox())
  const seen = await other.api.want<Metrics>('/v1/metrics/delivery')
  assert.equal(seen.totals.accepted, 0)
  assert.equal((await one.api.want<Metrics>('/v1/metrics/delivery')).totals.accepted, 1)
  const domainId = await addDomain(one, 'theirs.example', 'verified')
  const answers = [domainId, newUuid()].map((id) => other.api.call(`/v1/domains/${id}/traffic`))
  for (const { status, body } of await Promise.all(answers))
    assert.deepEqual([status, body.error], [404, 'not_found'])
})

test('traffic: a domain shows its usage, rates and limits', async () => {
  const limits = { messagesPerMinute: 3, messagesPerDay: 50, recipientsPerDay: 500 }
  const caller = await stage.createCaller({ limits })
  const path = `/v1/domains/${await addDomain(caller, 'busy.example', 'verified')}/traffic`
  const empty = await caller.api.want<Traffic>(path)
  assert.equal(empty.domain, 'busy.example')
  assert.deepEqual([empty.status, empty.reasons, empty.limits], ['normal', [], limits])
  assert.deepEqual(empty.usage, {
    sentLastMinute: 0,
    sentToday: 0,
    recipientsToday: 0,
    receivedToday: 0,
    bounceRate24h: null,
    complaintRate24h: null,
  })
  const inbox = await caller.api.createInbox()
  const to = [{ email: 'a@far.test' }, { email: 'b@far.test' }]
  for (let count = 0; count < 3; count++) await send(caller.api, inbox, { to })
  await moveTraffic(caller, 'busy.example')
  const limited = await caller.api.want<Traffic>(path)
  assert.equal(limited.status, 'limited')
  assert.match(limited.reasons.join(), /messagesPerMinute: 3 of 3/)
  const { sentLastMinute, sentToday, recipientsToday } = limited.usage
  assert.deepEqual([sentLastMinute, sentToday, recipientsToday], [3, 3, 6])
})

test('traffic: a domain that cannot send is paused, and says why', async () => {
  const caller = await stage.createCaller()
  const id = await addDomain(caller, 'mute.example', 'failed')
  const { status, reasons } = await caller.api.want<Traffic>(`/v1/domains/${id}/traffic`)
  assert.equal(status, 'paused')
  assert.deepEqual(reasons, [
    'Nothing can be sent from this domain: its outbound capability is failed.',
    'No key.',
  ])
})

test('traffic: the last minute’s count ends after a minute', async () => {
  const caller = await stage.createCaller()
  const path = `/v1/domains/${await addDomain(caller, 'inbox.test', 'verified')}/traffic`
  await send(caller.api, await caller.api.createInbox())
  assert.equal((await caller.api.want<Traffic>(path)).usage['sentLastMinute'], 1)
  stage.clock.advance(61_000)
  assert.equal((await caller.api.want<Traffic>(path)).usage['sentLastMinute'], 0)
  stage.clock.advance(2 * dayMs)
  assert.equal((await caller.api.want<Traffic>(path)).usage['sentToday'], 0)
})
