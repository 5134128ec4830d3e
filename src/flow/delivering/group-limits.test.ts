// The limits of a destination group against a simulated provider: they find what it allows, and keep to their rules.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { drawPanels } from '../../../bench/line-chart.ts'
import { SimulatedProvider } from '../../../tests/support/simulated-provider.ts'
import { GroupLimits } from './group-limits.ts'
import { type GroupRules, usualRules } from './shaping-rules.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const startMs = Date.UTC(2026, 0, 1)
const transactionMs = 500
const stepMs = 100
/** The drawing has a value for each quarter of an hour. */
const sampleMs = 15 * minuteMs

interface Course {
  delivered: number
  refused: number
  hours: number
  samples: { delivered: number; refused: number; connections: number }[]
}

/** Sends `wanted` messages to the provider, each over one of the connections that the limits allow. */
function send(rules: GroupRules, wanted: number, provider = new SimulatedProvider()): Course {
  const limits = new GroupLimits(rules, null, startMs)
  const samples: Course['samples'] = []
  let underWay: { endMs: number; refusal: string | null }[] = []
  let [delivered, refused, nowMs] = [0, 0, startMs]
  const end = (refusal: string | null) => {
    if (refusal === null) {
      delivered++
      limits.accepted(nowMs)
    } else {
      refused++
      limits.sent(nowMs, -1)
      limits.refused(nowMs, refusal)
    }
  }
  for (; delivered < wanted && nowMs < startMs + 48 * hourMs; nowMs += stepMs) {
    for (const { endMs, refusal } of underWay) if (endMs <= nowMs) end(refusal)
    underWay = underWay.filter(({ endMs }) => endMs > nowMs)
    while (underWay.length < limits.connections(nowMs) && limits.delayMs(nowMs, 1) === 0) {
      limits.sent(nowMs, 1)
      underWay.push({ endMs: nowMs + transactionMs, refusal: provider.take(nowMs) })
    }
    if ((nowMs - startMs) % sampleMs === 0)
      samples.push({ delivered, refused, connections: limits.connections(nowMs) })
  }
  return { delivered, refused, hours: (nowMs - startMs) / hourMs, samples }
}

const rates = [
  { count: 100, periodMs: minuteMs },
  { count: 1_000, periodMs: hourMs },
]
const named = send({ ...usualRules, connections: 20, rates }, 10_000)
const learned = send({ ...usualRules, connections: 20 }, 10_000)

test('shaping: 10,000 messages at 95 % of what a provider allows, refused 1 % at most', (t) => {
  // The quickest way: 1,000 in the first ten minutes of each hour.
  const idealHours = 9 + 1 / 6
  assert.ok(named.hours < idealHours / 0.95, `${named.hours} hours`)
  for (const [name, { delivered, refused, hours }] of Object.entries({ named, learned })) {
    const share = delivered / (1_000 * hours)
    t.diagnostic(
      `${name}: ${delivered} in ${hours.toFixed(2)} h, ${refused} refused, ${(share * 100).toFixed(1)} % of 1,000/h`,
    )
    assert.ok(delivered >= 10_000)
    assert.ok(share >= 0.95, `${name}: ${share} of what the provider allows`)
    assert.ok(refused < 100, `${name}: ${refused} refused`)
  }
  assert.equal(named.refused, 0)
})

test('shaping: docs/shaping.svg draws the same messages over time', () => {
  const length = Math.min(named.samples.length, learned.samples.length)
  const minutes = Array.from({ length }, (_, index) => (index * sampleMs) / minuteMs)
  const lines = (key: 'delivered' | 'refused' | 'connections') =>
    Object.entries({ 'rules in delivery.toml': named, 'no rules': learned }).map(([name, { samples }]) => ({
      name,
      values: samples.slice(0, length).map((sample) => sample[key]),
    }))
  const panels = [
    { title: 'Delivered', unit: 'messages', lines: lines('delivered') },
    { title: 'Refused', unit: 'messages', lines: lines('refused') },
    { title: 'Allowed connections', unit: 'connections', lines: lines('connections') },
  ]
  const title = '10,000 messages to a simulated provider that takes 100 a minute and 1,000 an hour'
  const drawn = drawPanels(title, panels, { minutes, warmUntil: 0 })
  const path = join(import.meta.dirname, '../../../docs/shaping.svg')
  if (process.env['POSTHORN_TEST_REWRITE']) writeFileSync(path, drawn)
  assert.equal(readFileSync(path, 'utf8'), drawn, 'POSTHORN_TEST_REWRITE=1 draws it again')
})

test('shaping: a limit per minute alone is learned', (t) => {
  const { delivered, refused, hours } = send(usualRules, 10_000, new SimulatedProvider(100, 1_000_000))
  const share = delivered / (6_000 * hours)
  t.diagnostic(`${delivered} in ${hours.toFixed(2)} h, ${refused} refused, ${(share * 100).toFixed(1)} %`)
  assert.ok(share > 0.95 && refused < 100)
})

test('shaping: several nodes together keep within a limit, and each gets a part of it', () => {
  const rules = {
    ...usualRules,
    connections: 3,
    firstConnections: 3,
    rates: [{ count: 10, periodMs: minuteMs }],
  }
  const nodes = Array.from({ length: 4 }, () => new GroupLimits(rules, null, startMs))
  for (const [rank, limits] of nodes.entries()) limits.setShare({ nodes: nodes.length, rank })
  const hadOne = new Set<number>()
  for (let minute = 0; minute < 4; minute++) {
    const nowMs = startMs + minute * minuteMs
    const parts = nodes.map((limits) => limits.connections(nowMs))
    assert.equal(
      parts.reduce((sum, part) => sum + part),
      3,
    )
    for (const [index, part] of parts.entries()) if (part > 0) hadOne.add(index)
  }
  assert.equal(hadOne.size, 4)
  let sent = 0
  for (const limits of nodes)
    while (limits.delayMs(startMs, 1) === 0) {
      limits.sent(startMs, 1)
      sent++
    }
  assert.ok(sent >= 8 && sent <= 10, `${sent} sent`)
  // The others have left. Their messages are still within the minute.
  nodes[0]!.setShare({ nodes: 1, rank: 0 })
  assert.ok(nodes[0]!.delayMs(startMs, 3) > 0)
})

test('shaping: a node that starts again keeps the limits and counts of before', () => {
  const rules = { ...usualRules, rates: [{ count: 10, periodMs: minuteMs }] }
  const before = new GroupLimits(rules, null, startMs)
  before.sent(startMs, 10)
  before.accepted(startMs)
  before.refused(startMs, '421 4.7.0')
  const after = new GroupLimits(rules, JSON.parse(JSON.stringify(before.state)), startMs + 20_000)
  assert.equal(after.state.reason, '421 4.7.0')
  assert.ok(after.delayMs(startMs + 20_000, 1) > 0, 'ten messages are within the minute')
  assert.equal(after.delayMs(startMs + 62_000, 1), 0)
})

test('shaping: nodes that all start again keep the counts of all of them', () => {
  const rules = { ...usualRules, rates: [{ count: 100, periodMs: hourMs }] }
  const before = new GroupLimits(rules, null, startMs)
  before.setShare({ nodes: 4, rank: 0 })
  before.sent(startMs, 25)
  const after = new GroupLimits(rules, JSON.parse(JSON.stringify(before.state)), startMs)
  assert.ok(after.delayMs(startMs, 1) > 0, 'the four have sent a hundred')
  after.setShare({ nodes: 4, rank: 0 })
  assert.ok(after.delayMs(startMs, 1) > 0)
})

test('shaping: the messages of a connection that a server ended are a limit for an hour, but never above a rule', () => {
  const limits = new GroupLimits(usualRules, null, startMs)
  assert.equal(limits.perConnection(startMs), null)
  limits.ended(startMs, 3)
  assert.equal(limits.perConnection(startMs + hourMs - 1), 3)
  assert.equal(limits.perConnection(startMs + hourMs), null)
  const ruled = new GroupLimits({ ...usualRules, messagesPerConnection: 2 }, null, startMs)
  ruled.ended(startMs, 3)
  assert.equal(ruled.perConnection(startMs), 2)
})

test('shaping: messages that arrive late count from then on, so that no minute at the provider has too many', () => {
  const limits = new GroupLimits(
    { ...usualRules, rates: [{ count: 100, periodMs: minuteMs }] },
    null,
    startMs,
  )
  limits.sent(startMs, 100)
  const arrivedMs = startMs + 20_000
  limits.isChanged = false
  for (let count = 0; count < 3; count++) limits.arrived(startMs, arrivedMs)
  assert.ok(limits.isChanged, 'the next node must know it')
  assert.equal(limits.delayMs(startMs + minuteMs + 1_000, 97), 0)
  assert.equal(limits.delayMs(startMs + minuteMs + 1_000, 98), 20_000)
  assert.equal(limits.delayMs(arrivedMs + minuteMs + 1_000, 100), 0)
})

test('shaping: a refusal takes a quarter of the connections even if they have just grown', () => {
  const limits = new GroupLimits(usualRules, null, startMs)
  for (let count = 0; count < 200; count++) limits.accepted(startMs)
  assert.equal(limits.connections(startMs), 10)
  limits.shrink(startMs + 1_000, '451 4.7.1')
  assert.equal(limits.connections(startMs + 1_000), 7)
  for (let count = 0; count < 200; count++) limits.accepted(startMs + 12_000)
  limits.shrink(startMs + 12_100, '451 4.7.1')
  assert.equal(limits.connections(startMs + 12_100), 6)
})

test('shaping: a node that comes and goes does not use up an hourly limit', () => {
  const rules = { ...usualRules, rates: [{ count: 1_000, periodMs: hourMs }] }
  const limits = new GroupLimits(rules, null, startMs)
  limits.sent(startMs, 10)
  for (let count = 0; count < 20; count++) {
    limits.setShare({ nodes: 2, rank: 0 })
    limits.setShare({ nodes: 1, rank: 0 })
  }
  assert.equal(limits.delayMs(startMs, 990), 0)
  assert.ok(limits.delayMs(startMs, 991) > 0)
})
