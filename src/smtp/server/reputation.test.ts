// Tests of reputation.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { reachableBytes } from '../../../tests/support/heap.ts'
import { Clock } from '../../base/clock.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import type { Misdeed } from './peers.ts'
import { Reputation } from './reputation.ts'
import { defaultServerLimits, type ServerLimits } from './server-options.ts'

function start(limits: Partial<ServerLimits> = {}) {
  const clock = new Clock()
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  return { clock, lines, door: new Reputation({ ...defaultServerLimits, ...limits }, { clock, log }) }
}

const networks: [string, string, boolean][] = [
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8::1', '2001:db8:0:0:ffff::1', true],
  ['2001:db8:0:1::1', '2001:db8::1', false],
  ['::1', '::2', true],
  ['1::', '1:0:0:0:1:2:3:4', true],
  ['2001:DB8::1', '2001:db8::1', true],
]
for (const [one, other, same] of networks) {
  test(`check 18: ${one} and ${other} are ${same ? 'one network' : 'two networks'}`, () => {
    const { door } = start({ maxConnectionsPerAddress: 1 })
    // The server passes addresses in this form.
    const [first, second] = [writtenAddress(one), writtenAddress(other)]
    assert.equal(door.admit(first), null)
    assert.equal(door.admit(second)?.code, same ? 421 : undefined)
    door.leave(first)
    assert.equal(door.admit(first), null)
  })
}

test('check 18: connections a minute are bounded, and refused ones do not prolong the refusal', () => {
  const { clock, door } = start({ connectionsPerMinutePerAddress: 2 })
  const connect = () => {
    const code = door.admit('192.0.2.1')?.code
    if (code === undefined) door.leave('192.0.2.1')
    return code
  }
  assert.deepEqual([connect(), connect(), connect(), connect()], [undefined, undefined, 421, 421])
  clock.advance(30_000)
  assert.deepEqual([connect(), connect()], [undefined, 421])
  clock.advance(60_000)
  assert.deepEqual([connect(), connect(), connect()], [undefined, undefined, 421])
})

const neighbours: [string, (host: number) => string, string][] = [
  ['a /24', (host) => `192.0.2.${host}`, '192.0.3.1'],
  ['a /48', (host) => `2001:db8:1:${host.toString(16)}::1`, '2001:db8:2::1'],
]
for (const [name, addressOf, elsewhere] of neighbours) {
  test(`check 18: all hosts of ${name} together get at most four times one host’s connections`, () => {
    const { door } = start({ maxConnectionsPerAddress: 5 })
    const hosts = Array.from({ length: 40 }, (_, i) => addressOf(i + 1))
    assert.equal(hosts.filter((address) => door.admit(address) === null).length, 20)
    assert.equal(door.admit(elsewhere), null)
    door.leave(addressOf(1))
    assert.equal(door.admit(addressOf(99)), null)
    assert.equal(door.admit(addressOf(99))?.code, 421)
  })

  test(`check 18: all hosts of ${name} together start at most four times one host’s messages`, () => {
    const { clock, door } = start({ messagesPerMinutePerAddress: 10 })
    const begun = (address: string, count: number) =>
      Array.from({ length: count }, () => door.beginMessage(address)).filter((refusal) => !refusal).length
    assert.equal(begun(addressOf(1), 20), 10)
    assert.equal(
      Array.from({ length: 10 }, (_, i) => begun(addressOf(i + 2), 10)).reduce((a, b) => a + b),
      30,
    )
    assert.deepEqual([begun(addressOf(50), 1), begun(elsewhere, 1)], [0, 1])
    clock.advance(60_000)
    assert.equal(begun(addressOf(1), 20), 10)
  })

  for (const misdeed of ['errors', 'unknown'] as const) {
    test(`check 26: one host of ${name} with ${misdeed} is blocked alone, and four block their network`, () => {
      const { clock, lines, door } = start({ maxErrorsPerAddress: 50, maxUnknownPerAddress: 50 })
      sin(door, addressOf(1), misdeed, 51)
      assert.equal(door.refusal(addressOf(1))?.code, 421)
      assert.equal(door.beginMessage(addressOf(1))?.code, 421)
      sin(door, addressOf(1), misdeed, 1_000)
      assert.equal(door.refusal(addressOf(2)), null)
      for (const host of [2, 3, 4]) sin(door, addressOf(host), misdeed, 51)
      assert.equal(door.refusal(addressOf(99))?.code, 421)
      assert.equal(door.refusal(elsewhere), null)
      // Each host, and perhaps the network, is logged once.
      const peers = lines.map((line) => JSON.parse(line).peer)
      assert.deepEqual([...new Set(peers)], peers)
      assert.ok(peers.length === 4 || peers.length === 5)
      clock.advance(600_001)
      assert.equal(door.refusal(addressOf(1)), null)
    })
  }
}

function sin(door: Reputation, address: string, misdeed: Misdeed, count: number): number[] {
  return Array.from({ length: count }, () => door.note(address, misdeed))
}

test('check 18: errors delay answers, and fade by the minute and with accepted mail', () => {
  const { clock, door } = start()
  const delays = sin(door, '192.0.2.1', 'errors', 60)
  assert.equal(delays[39], 0)
  for (const [index, want] of [
    [40, 100],
    [59, 2000],
  ] as const)
    assert.ok(delays[index]! > want - 20 && delays[index]! <= want, `${delays[index]} ms`)
  clock.advance(30 * 60_000)
  assert.equal(door.note('192.0.2.1', 'errors'), 0)
  for (let i = 0; i < 31; i++) door.noteTaken('192.0.2.1')
  assert.equal(Math.max(...sin(door, '192.0.2.1', 'errors', 40)), 0)
  // Errors and unknown recipients are counted separately.
  assert.equal(Math.max(...sin(door, '192.0.2.1', 'unknown', 20)), 0)
})

test('check 18: a network’s errors fade as slowly as they were counted', () => {
  const { door } = start()
  for (let host = 1; host <= 8; host++) sin(door, `192.0.2.${host}`, 'unknown', 20)
  assert.equal(door.note('192.0.2.9', 'unknown') > 0, true)
  // One message of one host must not forgive four errors of the others.
  door.noteTaken('192.0.2.9')
  const delayMs = door.note('192.0.2.9', 'unknown')
  assert.ok(delayMs > 1900 && delayMs <= 2025, `${delayMs} ms`)
})

test('check 18: delayed replies hold at most a quarter of the connections', async () => {
  const { door } = start({ maxConnections: 40, maxErrorsPerAddress: 100 })
  const hosts = Array.from({ length: 30 }, (_, i) => `192.0.${i}.1`)
  for (const host of hosts) sin(door, host, 'errors', 42)
  const answers = await Promise.all(hosts.map((host) => door.answer(host, 'errors')))
  assert.deepEqual(
    [answers.filter((last) => last === null).length, answers.filter((last) => last?.code === 421).length],
    [10, 20],
  )
})

test('check 18: 300,000 addresses are remembered in bounded memory', (t) => {
  const { door } = start()
  const beforeBytes = reachableBytes()
  const startMs = performance.now()
  for (let i = 0; i < 300_000; i++) {
    const address = `${10 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}.7`
    if (door.admit(address) === null) door.leave(address)
  }
  const microseconds = ((performance.now() - startMs) * 1000) / 300_000
  const grownMiB = (reachableBytes() - beforeBytes) / 2 ** 20
  assert.equal(door.refusal('10.0.0.7'), null)
  t.diagnostic(`${grownMiB.toFixed(0)} MiB; ${microseconds.toFixed(1)} µs a connection`)
  assert.ok(grownMiB < 100, `${grownMiB} MiB`)
})
