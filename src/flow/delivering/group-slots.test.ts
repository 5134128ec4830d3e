// Connections of a destination group: who gets one, when one closes, and which refusals pause the group.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { ShapedGroup, Slot } from './group-slots.ts'
import { builtInRules, groupOf, type ShapingRules, usualRules } from './shaping-rules.ts'

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
