// A DNS server may answer any bytes over UDP and TCP: the resolver never crashes, exceeds its timeout or believes a lie.
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { type Answer, decode, encode, RECURSION_AVAILABLE, TRUNCATED_RESPONSE } from 'dns-packet'
import fc from 'fast-check'
import { Clock } from '../../src/base/clock.ts'
import { DnsCache } from '../../src/dns/cache.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { DnsServer } from '../support/dns-server.ts'

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
const factor = Number(process.env['FUZZ_FACTOR'] ?? 1)
/** Long enough for `atOnce` concurrent queries, over TCP too, on a slow machine. */
const timeoutMs = 400
const atOnce = 50
let server: DnsServer
let resolver: Resolver

before(async () => {
  server = await DnsServer.start()
  resolver = new Resolver({ servers: [server.address], timeoutMs, tries: 1 })
})
after(() => server.close())

/** Returns the true answer to a query: a text behind an alias. */
function answerTo(query: Buffer, flags = 0): Buffer {
  const { id, questions } = decode(query)
  const name = questions[0]!.name
  const answers: Answer[] = [
    { type: 'CNAME', name, ttl: 60, data: 'alias.example' },
    { type: 'TXT', name: 'alias.example', ttl: 60, data: ['true'] },
  ]
  return encode({ id: id!, type: 'response', flags: RECURSION_AVAILABLE | flags, questions, answers })
}

const change = fc.record({ at: fc.nat(1_000), value: fc.nat(255) })
/** Changes to the true answer. One answer in ten stays unchanged. */
const spoiled = fc.record({
  changes: fc.array(change, { maxLength: 6 }),
  cut: fc.option(fc.nat(100)),
  more: fc.uint8Array({ maxLength: 40 }),
  noise: fc.option(fc.uint8Array({ maxLength: 1_500 }), { freq: 2 }),
})
const unspoiled = fc.constant({ changes: [], cut: null, more: new Uint8Array(), noise: null })
const spoiling = fc.oneof({ weight: 9, arbitrary: spoiled }, { weight: 1, arbitrary: unspoiled })
type Spoiling = typeof spoiling extends fc.Arbitrary<infer Value> ? Value : never

function spoil(answer: Buffer, { changes, cut, more, noise }: Spoiling): Buffer {
  if (noise) return Buffer.from(noise)
  const bytes = Buffer.concat([cut === null ? answer : answer.subarray(0, cut), more])
  for (const { at, value } of changes) if (bytes.length > 0) bytes[at % bytes.length] = value
  return bytes
}

/** Reports whether the bytes are a reply with the id and the question of the query. */
function isReplyTo(bytes: Buffer, query: Buffer): boolean {
  const end = query.indexOf(0, 12) + 5
  const question = (message: Buffer) => message.toString('latin1', 12, end).toLowerCase()
  return (
    bytes.readUInt16BE(0) === query.readUInt16BE(0) &&
    (bytes[2]! & 0x80) > 0 &&
    question(bytes) === question(query)
  )
}

for (const transport of ['udp', 'tcp'] as const)
  test(`check 52: any bytes over ${transport} are answered in time (seed ${seed})`, async (t) => {
    const cases = fc.sample(spoiling, { numRuns: 1_000 * factor, seed })
    const counts = new Map<string, number>()
    for (let from = 0; from < cases.length; from += atOnce) {
      const startedMs = performance.now()
      await Promise.all(cases.slice(from, from + atOnce).map((one, index) => askSpoiled(one, from + index)))
      const ms = performance.now() - startedMs
      assert.ok(ms < timeoutMs + 2_000, `${ms} ms`)
    }
    assert.ok((counts.get('ok') ?? 0) > 0)
    t.diagnostic([...counts].map(([status, count]) => `${status}: ${count}`).join(', '))

    async function askSpoiled(one: Spoiling, index: number): Promise<void> {
      const name = `f${index}.${transport}.example`
      let isTrue = false
      server.answerWith(name, (query, by) => {
        if (transport === 'tcp' && by === 'udp') return [answerTo(query, TRUNCATED_RESPONSE)]
        const bytes = spoil(answerTo(query), one)
        isTrue = bytes.length >= 12 && isReplyTo(bytes, query)
        return [bytes]
      })
      const { status } = await resolver.resolve('TXT', name)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status !== 'temporary') assert.ok(isTrue, JSON.stringify(one))
      server.answerWith(name, null)
    }
  })

test('check 52: lies before the true answer are skipped', async () => {
  server.answerWith('true.example', (query) => {
    const lies = fc
      .sample(fc.uint8Array({ maxLength: 600 }), { numRuns: 50, seed })
      .map((bytes) => Buffer.from(bytes))
    const otherId = answerTo(query)
    otherId.writeUInt16BE(otherId.readUInt16BE(0) ^ 1, 0)
    return [...lies, otherId, answerTo(query)]
  })
  const patient = new Resolver({ servers: [server.address], timeoutMs: 2_000, tries: 1 })
  const answer = await patient.resolve('TXT', 'true.example')
  assert.deepEqual(answer, {
    status: 'ok',
    records: ['true'],
    ttlSeconds: 60,
    canonicalName: 'alias.example',
  })
})

/** Queries a server whose UDP side truncates the answer and whose TCP side runs `converse`. */
async function askOverTcp(converse: (socket: Socket, reply: Buffer) => void) {
  const long = await DnsServer.start(
    {},
    { converse: (socket) => socket.once('data', (query) => converse(socket, answerTo(query.subarray(2)))) },
  )
  long.answerWith('tcp.example', (query) => [answerTo(query, TRUNCATED_RESPONSE)])
  const startedMs = performance.now()
  const asking = new Resolver({ servers: [long.address], timeoutMs: 300, tries: 1 })
  const answer = await asking.resolve('TXT', 'tcp.example')
  const ms = performance.now() - startedMs
  await long.close()
  return { answer, ms }
}

const prefixed = (reply: Buffer) => Buffer.concat([Buffer.of(reply.length >> 8, reply.length & 0xff), reply])

for (const [what, status, converse] of [
  ['hangs up', 'temporary', (socket) => socket.destroy()],
  ['says nothing', 'temporary', () => {}],
  ['sends a length and no more', 'temporary', (socket) => void socket.write(Buffer.of(0xff, 0xff))],
  ['sends a length of 0', 'temporary', (socket) => void socket.write(Buffer.of(0, 0))],
  [
    'hangs up in the middle',
    'temporary',
    (socket, reply) => void socket.end(prefixed(reply).subarray(0, 20)),
  ],
  ['sends a megabyte', 'temporary', (socket) => void socket.write(Buffer.alloc(1 << 20, 0xff))],
  [
    'sends it in single bytes',
    'ok',
    (socket, reply) => {
      socket.setNoDelay(true)
      for (const byte of prefixed(reply)) socket.write(Buffer.of(byte))
    },
  ],
  [
    'sends it twice',
    'ok',
    (socket, reply) => void socket.write(Buffer.concat([prefixed(reply), prefixed(reply)])),
  ],
] as const satisfies [string, string, (socket: Socket, reply: Buffer) => void][])
  test(`check 52: a server that ${what} over TCP: ${status}`, async () => {
    const { answer, ms } = await askOverTcp(converse)
    assert.equal(answer.status, status)
    assert.ok(ms < 1_500, `${ms} ms`)
  })

test('check 52: a rejected answer is not cached', async () => {
  server.set('kept.example', { TXT: ['true'] })
  server.fail('kept.example', 'otherQuestion')
  const clock = new Clock()
  const cache = new DnsCache({ resolver, clock })
  assert.equal((await cache.lookup('TXT', 'kept.example')).status, 'temporary')
  server.fail('kept.example', null)
  clock.advance(2_000)
  const answer = await cache.lookup('TXT', 'kept.example')
  assert.deepEqual(answer.status === 'ok' && answer.records, ['true'])
})
