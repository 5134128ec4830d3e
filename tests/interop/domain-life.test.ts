// Runs a domain's whole life on a real authoritative server, which serves what Posthorn printed, behind a real resolver.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Api } from '../support/api.ts'
import { type Domain, registerDomain, verify } from '../support/customer-domain.ts'
import { makePlace, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { NameServers, nameServersMissing } from './name-servers.ts'

const name = 'life.example'
const hourMs = 3_600_000
const missing = nameServersMissing()

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

const statuses = ({ status, capabilities }: Domain) =>
  [status, capabilities.outbound.status, capabilities.inbound.status].join(' ')
const found = ({ records }: Domain, purpose: string) =>
  records.filter((record) => record.purpose === purpose).map(({ status }) => status)

/** Returns the lines of the printed zone for records of these purposes. */
function linesOf(zone: string, { records }: Domain, purposes: string[]): string {
  const wanted = records.filter(({ purpose }) => purposes.includes(purpose))
  const lines = zone.split('\n').filter((line) => {
    return wanted.some(({ name, type }) => line.startsWith(`${name}. `) && line.includes(` IN ${type} `))
  })
  assert.equal(lines.length, wanted.length)
  return `${lines.join('\n')}\n`
}

/** All events that the webhook receives, with the domain's states in them. */
const events = [
  'domain.verified: verified pending pending',
  'domain.verified: verified verified pending',
  'domain.verified: verified verified verified',
  'domain.failed: verified failed verified',
  'domain.failed: failed failed failed',
  'domain.verified: verified verified verified',
]

const sending = ['ownership', 'dkim', 'return_path', 'spf']

test('check 52, 56: a domain lives through its states with knot and unbound as DNS', {
  skip: missing ?? false,
}, async (t) => {
  const servers = await NameServers.start(t, name)
  const place = await makePlace(t)
  const [sink, receiver] = [await startSink(place), await startReceiver(t)]
  const node = await startNode(place, {
    roles: ['api', 'jobs', 'delivery', 'webhooks'],
    env: {
      POSTHORN_DNS: servers.address,
      POSTHORN_MAIL_HOST: 'mx.host.example',
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await node.createCaller()
  const webhook = { url: receiver.url('/domain'), eventTypes: ['domain.verified', 'domain.failed'] }
  await api.want('/v1/webhooks', { method: 'POST', body: webhook, status: 201 })
  /** Waits until the webhook has received exactly the expected events. */
  const told = (...expected: string[]) =>
    until(`the webhook to be told ${expected.length} times`, () => {
      const calls = receiver.callsOf('/domain')
      if (calls.length < expected.length) return null
      const seen = calls.map(({ body }) => `${body.type}: ${statuses(body.data['domain'] as Domain)}`)
      assert.deepEqual(seen, expected)
      return seen
    })
  /** Returns the selectors that sign a message sent now. */
  const signers = async (word: string) => {
    const from = { email: `${word}@${name}` }
    const body = { from, to: [{ email: `${word}@far.test` }], subject: word, text: word }
    await api.want('/v1/send', { method: 'POST', body, idempotencyKey: `life-of-${word}`, status: 202 })
    const { raw } = await until(`the mail ${word} at the sink`, () =>
      sink.copies.find(({ recipient }) => recipient === `${word}@far.test`),
    )
    return [...raw.toString('latin1').matchAll(/^ s=([^;]+);/gm)].map(([, selector]) => selector)
  }
  let count = 0
  const domain = await registerDomain(api, name)
  const zone = (await api.bytes(`/v1/domains/${domain.id}/zone`)).toString()
  const show = () => api.want<Domain>(`/v1/domains/${domain.id}`)
  /** Advances the clock by `hours` and returns the domain after its daily check. */
  const later = async (hours: number) => {
    const before = (await show()).capabilities.inbound.checkedAt!
    node.foundation.clock.advance(hours * hourMs)
    return await until('the check of the day', async () => {
      const shown = await show()
      return shown.capabilities.inbound.checkedAt === before ? null : shown
    })
  }

  await t.test('a new domain is pending', async () => {
    assert.equal(statuses(domain), 'pending pending pending')
    const checked = await verify(api, domain)
    assert.equal(statuses(checked), 'pending pending pending')
    assert.ok(checked.records.every(({ status }) => status === 'missing'))
  })
  await t.test('a domain may be partly proved', async () => {
    await servers.publish(linesOf(zone, domain, ['ownership', 'dkim']))
    const checked = await verify(api, domain)
    assert.equal(statuses(checked), 'verified pending pending')
    assert.deepEqual(found(checked, 'dkim'), ['valid', 'valid'])
    assert.deepEqual(checked.capabilities.outbound.reasons, ['bounce.life.example has no MX record.'])
    await told(...events.slice(0, 1))
  })
  await t.test('outbound is proved first', async () => {
    await servers.publish(linesOf(zone, domain, sending))
    assert.equal(statuses(await verify(api, domain)), 'verified verified pending')
    await told(...events.slice(0, 2))
  })
  await t.test('outbound and inbound are both proved', async () => {
    await servers.publish(zone)
    const checked = await verify(api, domain)
    assert.equal(statuses(checked), 'verified verified verified')
    for (const { status, value, observed } of checked.records) {
      assert.equal(status, 'valid')
      assert.deepEqual(observed, [value], 'what was printed is what DNS gives')
    }
    await told(...events.slice(0, 3))
  })
  await t.test('a DNS outage of an hour revokes nothing', async () => {
    await servers.stopAuthority()
    const during = await later(24)
    assert.equal(statuses(during), 'verified verified verified')
    assert.ok(during.records.every(({ status }) => status === 'error'))
    await servers.startAuthority()
    const after = await later(1)
    assert.ok(after.records.every(({ status }) => status === 'valid'))
    assert.deepEqual(after.capabilities.inbound.reasons, [])
  })
  await t.test('outbound is lost after its records are gone for 72 h', async () => {
    await servers.publish(linesOf(zone, domain, ['ownership', 'mx']))
    for (let day = 0; day < 3; day++) assert.equal(statuses(await later(24)), 'verified verified verified')
    assert.equal(statuses(await later(24)), 'verified failed verified')
    await told(...events.slice(0, 4))
  })
  await t.test('removed records revoke all uses', async () => {
    await servers.publish('')
    for (let day = 0; day < 3; day++) assert.equal(statuses(await later(24)), 'verified failed verified')
    assert.equal(statuses(await later(24)), 'failed failed failed')
    await told(...events.slice(0, 5))
  })
  await t.test('the domain is proved again, and its keys are rotated', async () => {
    await servers.publish(zone)
    assert.equal(statuses(await verify(api, domain)), 'verified verified verified')
    await told(...events)
    const before = await signers('before')
    assert.equal(before.length, 2)
    const rotated = await rotate(api, domain)
    assert.deepEqual(found(rotated, 'dkim'), ['valid', 'valid', 'pending', 'pending'])
    assert.deepEqual(await signers('meanwhile'), before, 'keys that nobody has seen do not sign')
    await servers.publish((await api.bytes(`/v1/domains/${domain.id}/zone`)).toString())
    const seen = await verify(api, domain)
    assert.equal(statuses(seen), 'verified verified verified')
    assert.deepEqual(found(seen, 'dkim'), Array(4).fill('valid'))
    assert.deepEqual(
      seen.records.filter(({ purpose }) => purpose === 'dkim').map(({ required }) => required),
      [false, false, true, true],
    )
    const fresh = await until('the new keys to sign', async () => {
      const selectors = await signers(`after-${++count}`)
      return selectors.some((selector) => before.includes(selector)) ? null : selectors
    })
    assert.equal(fresh.length, 2)
    const after = await later(7 * 24 + 1)
    assert.equal(found(after, 'dkim').length, 2)
    assert.equal(statuses(after), 'verified verified verified')
    await told(...events)
  })
})

async function rotate(api: Api, { id }: Domain): Promise<Domain> {
  return await api.want<Domain>(`/v1/domains/${id}/rotate-dkim`, { method: 'POST' })
}
