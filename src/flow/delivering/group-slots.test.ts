// Connections of a destination group: who gets one, when one closes, and which refusals pause the group.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { enterOne } from './enter-one.ts'
import { ShapedGroup, Slot } from './group-slots.ts'
import { builtInRules, groupOf, type ShapingRules, usualRules, warmUpGroup } from './shaping-rules.ts'

const never = new AbortController().signal

function groupFor(route: string, rules: ShapingRules = builtInRules) {
  const clock = new Clock()
  const group = new ShapedGroup({ clock, log: silentLog }, groupOf(rules, route, `mx.${route}`), null)
  return { clock, group }
}

async function open(group: ShapedGroup): Promise<Slot> {
  const slot = await group.enter(never)
  assert.ok(slot instanceof Slot)
  slot.isOpen = true
  return slot
}

const busy = { code: 421, enhanced: '4.7.0', text: 'too many messages' }

test('shaping: queues of a group get its connections in the order of their requests', async () => {
  const usual = { ...usualRules, connections: 1, messagesPerConnection: 2 }
  const { group } = groupFor('far.test', { groups: [], usual })
  const first = await open(group)
  assert.equal(group.hasRoom, false)
  const got: string[] = []
  const openAs = async (name: string) => {
    const slot = await open(group)
    got.push(name)
    return slot
  }
  const second = openAs('second')
  const third = openAs('third')
  assert.equal(await group.admit(first, 1, never), 'go')
  assert.equal(await group.admit(first, 1, never), 'go')
  assert.equal(await group.admit(first, 1, never), 'over', 'two messages for each connection')
  first.release()
  const next = await second
  assert.deepEqual(got, ['second'])
  next.release()
  ;(await third).release()
  assert.ok(group.hasRoom)
})

test('shaping: too many messages pause a provider that took mail before, but never nodes of our own', async () => {
  for (const [route, isPaused] of [
    ['far.test', true],
    ['@relay', true],
    ['@local', false],
    ['@capture', false],
  ] as const) {
    const { group, clock } = groupFor(route)
    const slot = await open(group)
    group.refused(slot, busy, 'mail')
    assert.equal(group.isPaused, false, `${route} has taken nothing yet`)
    group.accepted(slot)
    group.refused(slot, busy, 'mail')
    assert.equal(group.isPaused, isPaused, route)
    const held = await group.enter(never)
    assert.equal('heldUntilMs' in held, isPaused)
    clock.advance(16_000)
    assert.equal(group.isPaused, false)
  }
})

test('shaping: a connection that is refused while others are open reduces their number, and blames no route', async () => {
  const { group } = groupFor('far.test')
  await open(group)
  const refused = await group.enter(never)
  assert.ok(refused instanceof Slot)
  const held = refused.fail(busy)
  assert.ok(held && held.heldUntilMs > 0)
  assert.equal(group.limits.state.connections, 1)
  // The first connection to a destination that never took mail: a fault of its queue.
  const silent = groupFor('dead.test').group
  assert.equal((await open(silent)).fail(busy), null)
})

test('shaping: a server that ends each connection after one message gets one in each, without a pause', async () => {
  const { group } = groupFor('far.test')
  const enough = { code: 421, enhanced: '4.7.0', text: 'one is enough' }
  const first = await open(group)
  assert.equal(await group.admit(first, 1, never), 'go')
  group.accepted(first)
  group.refused(first, enough, 'mail')
  first.release()
  assert.equal(group.isPaused, false)
  assert.equal(group.limits.state.perMinute, null)
  assert.equal(group.limits.state.connections, 5)
  const second = await open(group)
  assert.equal(await group.admit(second, 1, never), 'go')
  assert.equal(await group.admit(second, 1, never), 'over')
  second.release()
  // It refuses the first message of a connection too, so the number of messages is not the reason.
  const third = await open(group)
  group.refused(third, enough, 'mail')
  assert.equal(group.isPaused, false)
  assert.equal(group.limits.state.connections, 3)
  assert.equal(group.limits.perConnection(Date.now()), null)
})

test('shaping: a server that takes nothing for now is a fault of its queue, and gets fewer connections', async () => {
  const { group } = groupFor('far.test')
  const slot = await open(group)
  group.accepted(slot)
  slot.release()
  const refused = await open(group)
  refused.isOpen = false
  assert.equal(refused.fail({ code: 421, enhanced: '4.3.2', text: 'closed' }), null)
  assert.equal(group.isPaused, false)
  assert.equal(group.limits.state.connections, 3)
})

test('shaping: a reply that a rule names pauses the group as long as the rule says', async () => {
  const replies = [{ code: null, enhanced: '4.7.*', text: null, pauseMs: 600_000 }]
  const { group, clock } = groupFor('far.test', { groups: [], usual: { ...usualRules, replies } })
  group.refused(await open(group), { code: 451, enhanced: '4.7.5', text: 'come back later' }, 'rcpt')
  clock.advance(599_000)
  assert.ok(group.isPaused)
  clock.advance(2_000)
  assert.equal(group.isPaused, false)
})

/** The groups of two sources for one provider. */
function twoSources(clock = new Clock(), whole: ShapedGroup | null = null, host = 'mx.far.test') {
  const groups = ['192.0.2.5', '192.0.2.6'].map((address, index) => {
    const source = { address, ehlo: 'mx.example', warmUp: null }
    const group = groupOf(builtInRules, 'bulk:far.test', host, source)
    return new ShapedGroup({ clock, log: silentLog }, group, null, index === 0 ? whole : null)
  })
  return { clock, groups, first: groups[0]!, second: groups[1]! }
}

async function openOne(groups: readonly ShapedGroup[]): Promise<Slot> {
  const slot = await enterOne(groups, 1, never)
  assert.ok(slot instanceof Slot)
  return slot
}

async function openFor(groups: readonly ShapedGroup[], domain: string): Promise<Slot> {
  const slot = await openOne(groups)
  slot.domain = domain
  return slot
}

const listed = { code: 554, enhanced: '5.7.1', text: 'Client host [192.0.2.5] blocked using bl.example' }

test('sources: connections are divided among them, and one that is blocked rests longer each time', async () => {
  const { clock, groups, first, second } = twoSources(new Clock(), null, 'mx.google.com')
  const slots = [await openOne(groups), await openOne(groups), await openOne(groups), await openOne(groups)]
  assert.deepEqual([first.connectionCount, second.connectionCount], [2, 2])
  const slot = slots.find(({ group }) => group === first)!
  slot.domain = 'google'
  assert.equal(await first.admit(slot, 1, never), 'go')
  first.refused(slot, listed, 'rcpt')
  first.refused(slot, listed, 'rcpt')
  // Its connection closes, because the other source may take the next message.
  assert.equal(await first.admit(slot, 1, never), 'over')
  for (const open of slots) open.release()
  assert.equal((await openOne(groups)).group, second)
  const held = await enterOne([first], 1, never)
  assert.ok('heldUntilMs' in held && held.heldUntilMs >= clock.nowMs() + 3_599_000)
  clock.advance(3_601_000)
  assert.equal(first.isPaused, false)
  const again = await openOne([first])
  again.rest(listed)
  clock.advance(3_601_000)
  assert.ok(first.isPaused, 'the second rest takes two hours')
  clock.advance(3_600_000)
  assert.equal(first.isPaused, false)
  const slotOfFirst = await openOne([first])
  first.accepted(slotOfFirst)
  assert.equal(first.limits.state.refusals, 0)
})

test('sources: refusals for load make no rest longer, and at a provider that no table names it takes an hour', () => {
  const named = twoSources(new Clock(), null, 'mx.google.com')
  const usual = twoSources()
  for (const status of ['421', '421', '421']) {
    named.first.limits.refused(named.clock.nowMs(), status)
    named.clock.advance(600_000)
  }
  named.first.blockedBy(listed)
  usual.first.blockedBy(listed)
  for (const { clock, first } of [named, usual]) {
    clock.advance(3_599_000)
    assert.equal(first.isPaused, true)
    clock.advance(2_000)
    assert.equal(first.isPaused, false)
  }
  usual.first.blockedBy(listed)
  usual.clock.advance(3_601_000)
  assert.equal(usual.first.isPaused, false)
})

test('sources: a source rests only if a server refuses two of its domains, and takes no mail in between', async () => {
  const { groups, first, second } = twoSources()
  const [one, two] = [await openFor([first], 'one.test'), await openFor([first], 'two.test')]
  one.rivals = [second]
  const refuse = (slot: Slot) => first.refused(slot, listed, 'rcpt')
  refuse(one)
  refuse(one)
  assert.equal(first.isPaused, false)
  // Until then, another source tries that domain's mail.
  assert.equal(await first.admit(one, 1, never), 'over')
  assert.equal(await first.admit(two, 1, never), 'go')
  assert.equal((await openOne(groups)).group, second)
  first.accepted(two)
  refuse(two)
  assert.equal(first.isPaused, false)
  refuse(one)
  assert.equal(first.isPaused, true)
})

test('sources: if all rest, the queue is held until the first is back', async () => {
  const { clock, groups, first, second } = twoSources()
  first.blockedBy(listed)
  clock.advance(600_000)
  second.blockedBy(listed)
  const held = await enterOne(groups, 1, never)
  assert.ok('heldUntilMs' in held)
  const waitMs = held.heldUntilMs - clock.nowMs()
  assert.ok(waitMs >= 2_990_000 && waitMs < 3_400_000, `${waitMs} ms`)
})

test('sources: without a source, a block is a refusal like others', async () => {
  const { group } = groupFor('far.test')
  group.refused(await open(group), listed, 'rcpt')
  assert.equal(group.isPaused, false)
})

test('warm-up: a source sends no more than its plan says, then other sources do, and the next day it sends more', async () => {
  const clock = new Clock()
  const warmUp = { fromMs: clock.nowMs(), perDay: [2, 5] }
  const source = { address: '192.0.2.5', ehlo: 'mx.example', warmUp }
  const whole = new ShapedGroup({ clock, log: silentLog }, warmUpGroup(source, warmUp), null)
  const { groups, first, second } = twoSources(clock, whole)
  const slot = await openOne([first])
  slot.rivals = [second]
  assert.equal(first.largestJob, 2)
  assert.equal(await first.admit(slot, 1, never), 'go')
  assert.equal(await first.admit(slot, 1, never), 'go')
  assert.equal(await first.admit(slot, 1, never), 'over')
  slot.release()
  assert.equal((await openOne(groups)).group, second)
  const held = await enterOne([first], 1, never)
  assert.ok('heldUntilMs' in held && held.heldUntilMs > clock.nowMs() + 86_000_000)
  // A restart keeps the count.
  const restarted = new ShapedGroup(
    { clock, log: silentLog },
    warmUpGroup(source, warmUp),
    whole.limits.state,
  )
  assert.ok(restarted.waitMs(1) > 86_000_000)
  clock.advance(86_400_000)
  assert.equal(restarted.waitMs(3), 0)
  const next = await openOne([first])
  for (const _ of [1, 2, 3]) assert.equal(await first.admit(next, 1, never), 'go')
  clock.advance(86_400_000)
  assert.equal(whole.waitMs(1_000), 0, 'the plan is over')
})
