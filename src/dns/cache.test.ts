// The node's DNS cache: how long it remembers answers, which questions it asks, and that no asker fills all of it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { DnsCache, type DnsCacheOptions } from './cache.ts'
import { Resolver } from './resolver.ts'

let server: DnsServer
const soa = { zone: 'example', ttlSeconds: 3_600, minimumSeconds: 3_600 }

before(async () => {
  server = await DnsServer.start({
    'short.example': { TXT: ['v=spf1 -all'], ttlSeconds: 10 },
    'long.example': { TXT: ['v=spf1 -all'], ttlSeconds: 864_000 },
    'zero.example': { TXT: ['now'], ttlSeconds: 0 },
    'sorted.example': {
      MX: [
        [10, 'a.example'],
        [20, 'b.example'],
      ],
    },
    'large.example': { TXT: ['x'.repeat(60_000)] },
    'broken.example': {},
    'silent.example': {},
  })
  server.soa = soa
  server.fail('broken.example', 'SERVFAIL')
  server.fail('silent.example', 'silent')
})
after(() => server.close())

function startCache(options: Partial<DnsCacheOptions> = {}, timeoutMs = 2_000) {
  const clock = new Clock()
  const resolver = new Resolver({ servers: [server.address], timeoutMs, tries: 1 })
  return { clock, cache: new DnsCache({ resolver, clock, ...options }) }
}

/** Number of questions that `work` asks of the server. */
async function questions(work: () => unknown): Promise<number> {
  const before = server.asked.filter(({ transport }) => transport === 'udp').length
  await work()
  return server.asked.filter(({ transport }) => transport === 'udp').length - before
}

test('check 35: a remembered answer keeps the proof by DNSSEC', async (t) => {
  server.signed.add('short.example')
  t.after(() => server.signed.clear())
  const { cache } = startCache()
  for (const asked of [1, 0]) {
    const counted = await questions(async () => {
      const answer = await cache.lookup('TXT', 'short.example')
      assert.ok(answer.status === 'ok' && answer.isAuthenticated)
    })
    assert.equal(counted, asked)
  }
})

for (const [what, name, laterMs, asked] of [
  ['an answer within its TTL', 'short.example', 9_000, 0],
  ['an answer past its TTL', 'short.example', 10_000, 1],
  ['an answer with a long TTL, for an hour', 'long.example', 3_599_000, 0],
  ['an answer with a long TTL, past an hour', 'long.example', 3_600_000, 1],
  ['an answer with a TTL of 0', 'zero.example', 0, 1],
  ['an absence, for five minutes', 'missing.example', 299_000, 0],
  ['an absence, past five minutes', 'missing.example', 300_000, 1],
  ['an absence of the type', 'sorted.example', 299_000, 0],
  ['a failure, for two seconds', 'broken.example', 1_900, 0],
  ['a failure, past two seconds', 'broken.example', 2_000, 1],
  ['an answer too large for the cache', 'large.example', 0, 1],
] as const)
  test(`check 52: ${what}, costs ${asked} questions after ${laterMs} ms`, async () => {
    const { clock, cache } = startCache()
    const first = await cache.lookup('TXT', name)
    clock.advance(laterMs)
    const cost = await questions(async () => {
      const { ttlSeconds: _, ...again } = { ttlSeconds: 0, ...(await cache.lookup('TXT', name)) }
      const { ttlSeconds: __, ...before } = { ttlSeconds: 0, ...first }
      assert.deepEqual(again, before)
    })
    assert.equal(cost, asked)
  })

test('check 52: an absence without a lifetime from its zone is not cached', async () => {
  const { cache } = startCache()
  server.soa = null
  const cost = await questions(async () => {
    for (const _ of [1, 2]) await cache.lookup('TXT', 'missing.example')
  })
  server.soa = soa
  assert.equal(cost, 2)
})

test('a name matches in any case, with or without final dot, and its TTL counts down', async () => {
  const { clock, cache } = startCache()
  await cache.lookup('TXT', 'Short.example.')
  clock.advance(4_000)
  const answer = await cache.lookup('TXT', 'short.EXAMPLE')
  assert.deepEqual(answer, { status: 'ok', records: ['v=spf1 -all'], ttlSeconds: 6 })
})

test('check 52: concurrent equal questions are sent once, even with a TTL of 0', async () => {
  const { cache } = startCache()
  const cost = await questions(async () => {
    const lookups = ['a', 'b', 'c'].map((asker) => cache.lookupFor(asker))
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => lookups[index % 3]!('TXT', 'zero.example')),
    )
    assert.ok(answers.every((answer) => answer.status === 'ok' && answer.records[0] === 'now'))
  })
  assert.equal(cost, 1)
  assert.equal(cache.size.asking, 0)
})

test('a caller that changes its records does not change another caller’s', async () => {
  const { cache } = startCache()
  const [one, other] = await Promise.all([1, 2].map(() => cache.lookup('MX', 'sorted.example')))
  assert.ok(one?.status === 'ok' && other?.status === 'ok')
  one.records.reverse()
  const later = await cache.lookup('MX', 'sorted.example')
  assert.ok(later.status === 'ok')
  assert.deepEqual([other.records[0]?.preference, later.records[0]?.preference], [10, 10])
})

test('check 52: one asker’s 1,000 names evict no entry that others share', async (t) => {
  const { cache } = startCache({ maxEntries: 100 })
  const [one, other, hostile] = ['one', 'other', 'hostile'].map((asker) => cache.lookupFor(asker))
  for (const lookup of [one!, other!]) await lookup('TXT', 'long.example')
  const names = Array.from({ length: 1_000 }, (_, index) => `n${index}.flood.example`)
  const cost = await questions(async () => {
    for (let at = 0; at < names.length; at += 100)
      await Promise.all(names.slice(at, at + 100).map((name) => hostile!('TXT', name)))
  })
  t.diagnostic(`1,000 names: ${cost} questions, ${cache.size.entries} entries, ${cache.size.bytes} bytes`)
  assert.equal(cost, 1_000)
  assert.ok(cache.size.entries <= 100)
  assert.equal(await questions(() => one!('TXT', 'long.example')), 0)
  assert.equal(await questions(() => hostile!('TXT', names[0]!)), 1)
})

test('check 52: the cache is bounded in bytes', async () => {
  const { cache } = startCache({ maxBytes: 200_000 })
  for (let index = 0; index < 40; index++) {
    server.set(`big${index}.example`, { TXT: ['x'.repeat(10_000)] })
    for (const asker of ['one', 'other']) await cache.lookupFor(asker)('TXT', `big${index}.example`)
  }
  assert.ok(cache.size.bytes > 100_000 && cache.size.bytes <= 200_000, `${cache.size.bytes} bytes`)
})

test('check 52: one asker’s 1,000 silent names delay no other asker', async (t) => {
  const names = Array.from({ length: 1_000 }, (_, index) => `s${index}.silent.example`)
  for (const name of names) {
    server.set(name, {})
    server.fail(name, 'silent')
  }
  const { cache } = startCache({ maxAsking: 60, deadlineMs: 3_000 }, 1_000)
  const alone = await timeOf(() => startCache().cache.lookup('TXT', 'short.example'))
  const cost = server.asked.length
  const hostile = Promise.all(names.map((name) => cache.lookupFor('hostile')('TXT', name)))
  await until('the silent names', () => server.asked.length - cost >= 20)
  assert.equal(cache.size.asking, 20)
  const amid = await timeOf(() => cache.lookupFor('other')('TXT', 'short.example'))
  t.diagnostic(
    `another's question: ${alone.toFixed(1)} ms alone, ${amid.toFixed(1)} ms amid 1,000 silent names`,
  )
  const startedMs = performance.now()
  const answers = await hostile
  assert.ok(performance.now() - startedMs < 6_000)
  assert.ok(answers.every(({ status }) => status === 'temporary'))
  assert.ok(amid < alone + 300)
  assert.ok(server.asked.length - cost <= 1_000)
})

test('check 52: a question is answered by its deadline, and a late answer is remembered', async () => {
  server.set('slow.example', { TXT: ['late'] })
  server.delay('slow.example', 300)
  const { cache } = startCache({ deadlineMs: 50 })
  assert.equal((await cache.lookup('TXT', 'slow.example')).status, 'temporary')
  await until('the late answer', () => cache.size.entries === 1)
  assert.equal(await questions(() => cache.lookup('TXT', 'slow.example')), 0)
})

async function timeOf(work: () => unknown): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}
