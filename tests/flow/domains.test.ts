// A proved domain over several days: checked daily, lost only after three failed checks over 72 h, and reported each time.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SecretBox } from '../../src/base/secret-box.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import type { Caller } from '../../src/flow/caller.ts'
import { rotateDkim } from '../../src/flow/domains/rotate-dkim.ts'
import { recheckDomains } from '../../src/flow/domains/verify-domain.ts'
import { type Domain, proveDomain, publish, registerDomain, verify } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const mtaStsMode = () => 'testing' as const

const dns = await DnsServer.start()
const place = await makePlace({ after })
place.after(() => dns.close())
const node = await startNode(place, { roles: ['api'], env: { POSTHORN_DNS: dns.address } })
const { clock, db } = node.foundation

const statuses = ({ status, capabilities }: Domain) =>
  [status, capabilities.outbound.status, capabilities.inbound.status].join(' ')

/** Runs the check that the jobs of a node run every two seconds. */
function recheck({ foundation: { db, clock, log } }: TestNode = node): Promise<boolean> {
  const resolver = new Resolver({ servers: [dns.address], timeoutMs: 500, tries: 1 })
  return recheckDomains({ db, clock, log, resolver, mailHost: 'localhost', mtaStsMode }, 20)
}

/** Returns the domain after that many hours and the jobs of that time. */
async function later(api: Parameters<typeof verify>[0], { id }: Domain, hours: number): Promise<Domain> {
  clock.advance(hours * hourMs)
  while (await recheck());
  return await api.want<Domain>(`/v1/domains/${id}`)
}

async function told(organizationId: string): Promise<string[]> {
  const rows = await db.query<{ items: { type: string; domain: string }[] }>(
    'select items from outbox where organization_id = $1 order by xact, seq',
    [organizationId],
  )
  return rows.flatMap(({ items }) => items.map(({ type }) => type))
}

test('check 56: a record missing from DNS is lost after three failed checks over 72 h, each use on its own', async () => {
  const { api, organizationId } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'daily.example', ['outbound', 'inbound'])
  assert.equal(statuses(domain), 'verified verified verified')
  publish(dns, domain, ['outbound'])
  const seen = []
  for (let day = 0; day < 4; day++) seen.push(statuses(await later(api, domain, 24)))
  assert.deepEqual(seen, [...Array(3).fill('verified verified verified'), 'verified verified failed'])
  publish(dns, domain, [])
  for (let day = 0; day < 3; day++)
    assert.equal(statuses(await later(api, domain, 24)), 'verified verified failed')
  assert.equal(statuses(await later(api, domain, 24)), 'failed failed failed')
  publish(dns, domain, ['inbound'])
  assert.equal(statuses(await later(api, domain, 24)), 'verified failed verified')
  assert.deepEqual(await told(organizationId), [
    ...['domain.verified', 'domain.failed', 'domain.failed', 'domain.verified'],
  ])
})

test('hundreds of failed checks within an hour revoke nothing', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'hasty.example', ['inbound'])
  publish(dns, domain, [])
  for (let check = 0; check < 20; check++)
    assert.equal(statuses(await verify(api, domain)), 'verified pending verified')
  clock.advance(72 * hourMs)
  const last = await verify(api, domain)
  assert.equal(statuses(last), 'failed pending failed')
  assert.ok(last.verifiedAt)
})

test('check 52: a DNS outage of days revokes nothing, and DNS is asked again within the hour', async () => {
  const { api, organizationId } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'down.example', ['outbound', 'inbound'])
  for (const { name } of domain.records) dns.fail(name, 'SERVFAIL')
  for (let day = 0; day < 5; day++) {
    const shown = await later(api, domain, 24)
    assert.equal(statuses(shown), 'verified verified verified')
    assert.ok(shown.records.every(({ status }) => status === 'error'))
  }
  for (const { name } of domain.records) dns.fail(name, null)
  assert.ok((await later(api, domain, 1)).records.every(({ status }) => status !== 'error'))
  assert.deepEqual(await told(organizationId), ['domain.verified'])
})

test('a domain that was never proved is looked up only on request', async () => {
  const { api } = await node.createCaller()
  const domain = await registerDomain(api, 'idle.example')
  await verify(api, domain)
  const asked = dns.asked.length
  await later(api, domain, 24 * 30)
  assert.deepEqual(
    dns.asked.slice(asked).filter(({ name }) => name.endsWith('idle.example')),
    [],
  )
})

test('two nodes share the due checks', async () => {
  const { api } = await node.createCaller()
  const domains = []
  for (let i = 0; i < 4; i++) domains.push(await proveDomain(api, dns, `shared-${i}.example`, ['inbound']))
  clock.advance(dayMs)
  const asked = dns.asked.length
  await Promise.all([recheck(), recheck(), recheck()])
  const questions = dns.asked
    .slice(asked)
    .map(({ type, name }) => `${type} ${name}`)
    .filter((question) => question.includes('shared-'))
  assert.equal(questions.length, 4 * 9)
  assert.equal(new Set(questions).size, questions.length)
})

test('a check does not undo changes that were made during its look-up', async (t) => {
  const { api, organizationId } = await node.createCaller()
  const path = (domain: Domain, verb = '') => `/v1/domains/${domain.id}${verb}`
  /** Starts a check whose look-ups stay pending. */
  const begin = async (domain: Domain) => {
    const [release, before] = [dns.hold(), dns.held]
    const checking = api.call<{ domain: Domain } & { error?: string }>(path(domain, '/verify'), {
      method: 'POST',
    })
    await until('the check to have begun', () => dns.held > before)
    return { checking, release }
  }
  await t.test('rotated keys stay, and are pending', async () => {
    const domain = await proveDomain(api, dns, 'held-1.example', ['outbound'])
    const { checking, release } = await begin(domain)
    await api.want<Domain>(path(domain, '/rotate-dkim'), { method: 'POST' })
    release()
    const { body } = await checking
    assert.deepEqual(
      body.domain.records.filter(({ purpose }) => purpose === 'dkim').map(({ status }) => status),
      ['valid', 'valid', 'pending', 'pending'],
    )
  })
  await t.test('a deleted domain stays deleted', async () => {
    const domain = await proveDomain(api, dns, 'held-2.example', ['outbound'])
    const { checking, release } = await begin(domain)
    await api.call(path(domain), { method: 'DELETE' })
    release()
    assert.deepEqual([(await checking).status, (await checking).body.error], [404, 'not_found'])
  })
  await t.test('an older check does not overwrite a newer one', async () => {
    const domain = await registerDomain(api, 'held-3.example')
    publish(dns, domain, ['inbound'])
    const current = await db.query<{ count: number }>(
      'select count(*) as count from outbox where organization_id = $1',
      [organizationId],
    )
    const { checking, release } = await begin(domain)
    const newer = new Date(clock.nowMs() + 60_000)
    await db.query('update domain set checked_at = $2 where id = $1', [domain.id, newer])
    release()
    assert.equal(statuses((await checking).body.domain), 'pending pending pending')
    assert.equal((await told(organizationId)).length, current[0]!.count)
  })
})

test('check 89: a check dated a day ahead by a wrong clock does not prevent new checks', async () => {
  const { api } = await node.createCaller()
  const domain = await registerDomain(api, 'ahead.example')
  await verify(api, domain)
  await db.query('update domain set checked_at = $2 where id = $1', [
    domain.id,
    new Date(clock.nowMs() + dayMs),
  ])
  publish(dns, domain, ['inbound'])
  assert.equal(statuses(await verify(api, domain)), 'verified pending verified')
})

test('a rotation while keys wait to be published makes no further keys', async () => {
  const { api, organizationId } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'restless.example', ['outbound'])
  const { secretBox } = node.foundation
  let sealed = 0
  const counting = {
    check: secretBox.check,
    seal: (...given: Parameters<SecretBox['seal']>) => {
      sealed++
      return secretBox.seal(...given)
    },
  } as SecretBox
  const deps = { db, clock, secretBox: counting, mailHost: 'localhost', mtaStsMode }
  const rotate = () => rotateDkim(deps, { organizationId, inboxIds: null } as Caller, domain.id)
  const first = await rotate()
  assert.deepEqual((await rotate()).records, first.records)
  assert.equal(sealed, 2)
})

test('a retired key is listed for seven days and then erased', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'week.example', ['outbound'])
  const rotated = await api.want<Domain>(`/v1/domains/${domain.id}/rotate-dkim`, { method: 'POST' })
  publish(dns, rotated, ['outbound'])
  const count = ({ records }: Domain) => records.filter(({ purpose }) => purpose === 'dkim').length
  assert.equal(count(await verify(api, domain)), 4)
  assert.equal(count(await later(api, domain, 7 * 24 - 1)), 4)
  assert.equal(count(await later(api, domain, 2)), 2)
})

test('a node’s jobs run the due checks', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'jobs.example', ['inbound'])
  const other = await startNode(place, { roles: ['jobs'], env: { POSTHORN_DNS: dns.address } })
  other.foundation.clock.advance(400 * dayMs)
  await until('the check of the day', async () => {
    const { capabilities } = await api.want<Domain>(`/v1/domains/${domain.id}`)
    return capabilities.inbound.checkedAt !== domain.capabilities.inbound.checkedAt
  })
  await other.stop()
})
