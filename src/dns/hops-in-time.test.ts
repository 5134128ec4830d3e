// Many domains before one deadline, against a DNS server of our own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { HopsInTime, type HopsInTimeOptions } from './hops-in-time.ts'
import { HopFinder } from './mx.ts'
import { Resolver } from './resolver.ts'

let server: DnsServer
const clock = new Clock()
const silent = Array.from({ length: 6 }, (_, index) => `silent${index}.example`)

before(async () => {
  server = await DnsServer.start({ 'plain.example': { A: ['8.8.2.1'] }, 'other.example': { A: ['8.8.2.2'] } })
  for (const name of silent) {
    server.set(name, { A: ['8.8.2.3'] })
    server.fail(name, 'silent')
  }
})
after(() => server.close())

function inTime(options: Partial<HopsInTimeOptions> = {}, timeoutMs = 300): HopsInTime {
  const resolver = new Resolver({ servers: [server.address], timeoutMs, tries: 1 })
  return new HopsInTime({ hopFinder: new HopFinder({ resolver, isAllowed: () => true }), clock, ...options })
}

const statuses = async (finding: Promise<Map<string, { status: string }>>) =>
  [...(await finding)].map(([domain, { status }]) => [domain, status])

test('check 79: answers by the deadline are returned, and the others are temporary', async () => {
  const asked = ['plain.example', ...silent, 'plain.example', 'missing.example']
  const found = inTime({}, 3_000).find('one', asked, 1_000)
  assert.deepEqual(await statuses(found), [
    ['plain.example', 'ok'],
    ...silent.map((name) => [name, 'temporary']),
    ['missing.example', 'domain_not_found'],
  ])
})

test('check 79: a call without domains returns at once', async () => {
  assert.equal((await inTime().find('one', [], 60_000)).size, 0)
})

test('check 79: an answer after the deadline is remembered for the next caller', async () => {
  const resolver = new Resolver({ servers: [server.address], timeoutMs: 200, tries: 20 })
  const hopFinder = new HopFinder({ resolver, isAllowed: () => true })
  server.set('late.example', { A: ['8.8.2.4'] })
  server.fail('late.example', 'silent')
  const found = await new HopsInTime({ hopFinder, clock }).find('one', ['late.example'], 50)
  assert.equal(found.get('late.example')?.status, 'temporary')
  assert.equal(hopFinder.recall('late.example'), null)
  server.fail('late.example', null)
  await until('the late answer', () => hopFinder.recall('late.example')?.status === 'ok')
})

test('check 79: one asker with many silent domains leaves capacity for the others', async () => {
  const finder = inTime({ maxLookups: 3, maxOfAsker: 2 }, 5_000)
  const before = server.asked.length
  const stuck = finder.find('one', silent, 200)
  assert.equal((await finder.find('other', ['other.example'], 4_000)).get('other.example')?.status, 'ok')
  assert.deepEqual(new Set((await stuck).values()).size, 1)
  const asked = server.asked.slice(before).map(({ name }) => name)
  assert.deepEqual(new Set(asked), new Set([...silent.slice(0, 2), 'other.example']))
})

test('check 79: a full queue answers at once', async () => {
  const finder = inTime({ maxLookups: 1, maxWaiting: 1 })
  const found = await finder.find('one', silent.slice(0, 3), 50)
  assert.deepEqual(
    [...found.values()].map((hops) => hops.status === 'temporary' && hops.reason),
    ['DNS did not answer in time', 'DNS did not answer in time', 'too many look-ups are under way'],
  )
})
