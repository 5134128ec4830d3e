// One asker's share of the questions under way, against a DNS server of our own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { until } from '../../tests/support/until.ts'
import { Resolver } from './resolver.ts'
import { SharedResolver } from './shared-resolver.ts'

const names = Array.from({ length: 1_000 }, (_, index) => `n${index}.thousand.example`)
let server: DnsServer
let resolver: Resolver

before(async () => {
  const zone = names.map((name) => [name, { A: ['192.0.2.10'] }])
  server = await DnsServer.start({
    ...Object.fromEntries(zone),
    'silent.example': { A: ['192.0.2.11'] },
    'plain.example': { A: ['192.0.2.12'] },
  })
  server.fail('silent.example', 'silent')
  resolver = new Resolver({ servers: [server.address], timeoutMs: 5_000 })
})
after(() => server.close())

test('check 52: one asker’s 1,000 names use 20 of 60 slots, and all are answered', async (t) => {
  const shared = new SharedResolver({ resolver, maxAsking: 60 })
  const release = server.hold()
  const startedMs = performance.now()
  const finding = Promise.all(names.map((name) => shared.resolve('A', name, { asker: 'one' })))
  await until('20 questions', () => server.held === 20)
  release()
  const found = await finding
  t.diagnostic(`1,000 questions, 20 at a time: ${Math.round(performance.now() - startedMs)} ms`)
  assert.equal(server.held, 20)
  assert.ok(found.every(({ status }) => status === 'ok'))
})

test('hostile 21: unanswered questions delay neither other askers nor the asker’s other purposes', async () => {
  const shared = new SharedResolver({ resolver, maxAsking: 6 })
  const ending = new AbortController()
  const [delivery, validation] = [shared.for('delivery'), shared.for('validation')]
  const stuck = Array.from({ length: 30 }, () =>
    delivery.resolve('A', 'silent.example', { asker: 'one', signal: ending.signal }),
  )
  const before = server.asked.length
  for (const answer of [
    await delivery.resolve('A', 'plain.example', { asker: 'other' }),
    await validation.resolve('A', 'plain.example', { asker: 'one' }),
    await shared.resolve('A', 'plain.example'),
  ])
    assert.equal(answer.status, 'ok')
  ending.abort()
  for (const { status } of await Promise.all(stuck)) assert.equal(status, 'temporary')
  const asked = server.asked.slice(before).filter(({ name }) => name === 'silent.example')
  assert.ok(asked.length <= 2, `${asked.length} questions`)
  // The slots of the waiting questions are free again.
  assert.equal((await delivery.resolve('A', 'plain.example', { asker: 'one' })).status, 'ok')
})
