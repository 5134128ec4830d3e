// Limits that several nodes share: a node that leaves a group and comes back goes on with the counts of all.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { GroupRow } from '../../store/sending/destination-groups.ts'
import { Slot } from './group-slots.ts'
import { Shaper } from './shaper.ts'
import { builtInRules, type ShapingRules, usualRules } from './shaping-rules.ts'

/** The tables of groups in memory. */
function startStore() {
  const rows = new Map<string, GroupRow>()
  const nodes = new Map<string, Set<number>>()
  const nodesOf = (name: string) => nodes.get(name) ?? nodes.set(name, new Set()).get(name)!
  const query = async (sql: string, [first, second]: [unknown, unknown?]) => {
    if (sql.startsWith('select'))
      return [...rows.values()].filter(({ name }) => (first as string[]).includes(name))
    if (sql.startsWith('insert into destination_group as'))
      for (const row of JSON.parse(first as string) as GroupRow[])
        rows.set(row.name, { ...row, changedAt: new Date(row.changedAt) })
    const names = (second ?? []) as string[]
    if (sql.startsWith('with mine'))
      return names.map((name) => ({ name, nodes: [...nodesOf(name).add(first as number)].sort() }))
    if (sql.startsWith('delete')) for (const name of names) nodesOf(name).delete(first as number)
    return []
  }
  return { writer: { query } } as never
}

function startNodes(rules: ShapingRules, pools: ConstructorParameters<typeof Shaper>[0]['pools'] = []) {
  const clock = new Clock()
  const db = startStore()
  const shapers = [1, 2, 3].map(
    (nodeId) => new Shaper({ db, clock, log: silentLog, rules, pools, node: { nodeId, hasOthers: true } }),
  )
  return { clock, shapers }
}

const never = new AbortController().signal

/** Sends one message, and stores the counts. Returns whether the limits let it go. */
async function sendOne(shaper: Shaper, route: string): Promise<boolean> {
  const slot = await shaper.enter(route, { host: 'mx.far.test', address: '192.0.2.9' }, 1, never)
  if (!(slot instanceof Slot)) return false
  const admission = await slot.group.admit(slot, 1, never)
  slot.release()
  await shaper.synchronize()
  return admission === 'go'
}

/** Sends a message every two minutes from one node after the other. Returns how many went. */
async function sendThinly({ clock, shapers }: ReturnType<typeof startNodes>, route: string): Promise<number> {
  let sent = 0
  for (let turn = 0; turn < 60; turn++) {
    if (await sendOne(shapers[turn % shapers.length]!, route)) sent++
    clock.advance(120_000)
    for (const shaper of shapers) await shaper.synchronize()
  }
  return sent
}

test('shaping: nodes that send a message now and then keep a limit together', async () => {
  const rates = [{ count: 10, periodMs: 86_400_000 }]
  const usual = { ...usualRules, rates }
  assert.equal(await sendThinly(startNodes({ groups: [], usual }), 'far.test'), 10)
})

test('warm-up: nodes that send a message now and then keep the plan together', async () => {
  const warmUp = { fromMs: Date.now(), perDay: [10, 10] }
  const source = { address: '192.0.2.5', ehlo: 'mx.example', warmUp }
  const pool = { name: 'shop', organizations: [], purposes: [], sources: [source] }
  assert.equal(await sendThinly(startNodes(builtInRules, [pool]), 'shop:far.test'), 10)
})
