// The limits of a destination group against a simulated provider: they find what it allows, and keep to their rules.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupLimits } from './group-limits.ts'
import { type GroupRules, usualRules } from './shaping-rules.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const startMs = Date.UTC(2026, 0, 1)

/** Refuses with 421 past `perMinute` messages a minute and 20 connections, and with 4.7.28 past `perHour` an hour. */
class Provider {
  readonly #taken: number[] = []
  readonly #perMinute: number
  readonly #perHour: number

  constructor(perMinute = 100, perHour = 1_000) {
    this.#perMinute = perMinute
    this.#perHour = perHour
  }

  /** Returns the refusal of a message, or null if it is taken. */
  take(nowMs: number): string | null {
    while (this.#taken.length > 0 && this.#taken[0]! <= nowMs - hourMs) this.#taken.shift()
    if (this.#taken.length >= this.#perHour) return '450 4.7.28'
    const inMinute = this.#taken.length - this.#taken.findLastIndex((at) => at <= nowMs - minuteMs) - 1
    if (inMinute >= this.#perMinute) return '421 4.7.0'
    this.#taken.push(nowMs)
    return null
  }
}

interface Sent {
  delivered: number
  refused: number
  hours: number
}

/** Sends `wanted` messages over connections that each take `transactionMs` for a message. */
function send(rules: GroupRules, wanted: number, provider = new Provider(), transactionMs = 500): Sent {
  const limits = new GroupLimits(rules, null, startMs)
  const wires: { endMs: number; refusal: string | null }[] = []
  let [delivered, refused, nowMs] = [0, 0, startMs]
  while (delivered < wanted && nowMs < startMs + 48 * hourMs) {
    for (const { refusal } of wires.filter(({ endMs }) => endMs <= nowMs)) {
      if (refusal === null) {
        delivered++
        limits.accepted(nowMs)
      } else {
        refused++
        limits.sent(nowMs, -1)
        limits.refused(nowMs, refusal)
      }
    }
    wires.splice(0, wires.length, ...wires.filter(({ endMs }) => endMs > nowMs))
    while (wires.length < limits.connections(nowMs) && limits.delayMs(nowMs, 1) === 0) {
      limits.sent(nowMs, 1)
      wires.push({ endMs: nowMs + transactionMs, refusal: provider.take(nowMs) })
    }
    nowMs += 100
  }
  return { delivered, refused, hours: (nowMs - startMs) / hourMs }
}

test('shaping: 10,000 messages at 95 % of what a provider allows, refused 1 % at most', (t) => {
  const rates = [
    { count: 100, periodMs: minuteMs },
    { count: 1_000, periodMs: hourMs },
  ]
  const named = send({ ...usualRules, connections: 20, rates }, 10_000)
  const learned = send({ ...usualRules, connections: 20 }, 10_000)
  // The quickest way: 1,000 in the first ten minutes of each hour.
  const idealHours = 9 + 1 / 6
  assert.ok(named.hours < idealHours / 0.95, `${named.hours} hours`)
  for (const [name, { delivered, refused, hours }] of Object.entries({ named, learned })) {
    const rate = delivered / (1_000 * hours)
    t.diagnostic(
      `${name}: ${delivered} in ${hours.toFixed(2)} h, ${refused} refused, ${(rate * 100).toFixed(1)} %`,
    )
    assert.ok(delivered >= 10_000)
    assert.ok(rate >= 0.95, `${name}: ${rate} of what the provider allows`)
    assert.ok(refused < 100, `${name}: ${refused} refused`)
  }
  assert.equal(named.refused, 0)
})

test('shaping: a limit per minute alone is learned', (t) => {
  const { delivered, refused, hours } = send(usualRules, 10_000, new Provider(100, 1_000_000))
  const rate = delivered / (6_000 * hours)
  t.diagnostic(`${delivered} in ${hours.toFixed(2)} h, ${refused} refused, ${(rate * 100).toFixed(1)} %`)
  assert.ok(rate > 0.85 && refused < 200)
})
