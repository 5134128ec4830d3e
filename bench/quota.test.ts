// Tests that busy processes get no more CPU than their small cores have, each and all together.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Endings } from './children.ts'
import { makeSmallCores } from './quota.ts'
import { cpuMsOf } from './usage.ts'

const share = 0.1

function missing(): string | null {
  const scope = new Endings()
  try {
    makeSmallCores(scope, { count: 1, share })
    return null
  } catch (error) {
    return (error as Error).message // No right to write control groups, for example.
  } finally {
    void scope.run()
  }
}

test('three busy processes on two small cores use up to one core each, and two together', async (t) => {
  const reason = missing()
  if (reason !== null) return t.skip(reason)
  const scope = new Endings()
  try {
    const loops = Array.from({ length: 3 }, () => spawn('sh', ['-c', 'read go; while :; do :; done']))
    for (const loop of loops) scope.after(() => void loop.kill('SIGKILL'))
    await Promise.all(loops.map((loop) => once(loop, 'spawn')))
    const pids = loops.map(({ pid }) => pid!)
    makeSmallCores(scope, { count: 2, share }).hold(pids)
    for (const { stdin } of loops) stdin.write('go\n')
    const startedMs = performance.now()
    await pause(1_000)
    const used = pids.map((pid) => cpuMsOf([pid]))
    const coreMs = share * (performance.now() - startedMs)
    // Each period may be exceeded by a tick, which is repaid in the next ones.
    const slackMs = 40
    assert.ok(
      used.every((ms) => ms <= coreMs + slackMs),
      `each: ${used}, a core: ${coreMs}`,
    )
    const all = used.reduce((sum, ms) => sum + ms, 0)
    assert.ok(all > 0 && all <= 2 * coreMs + 2 * slackMs, `together: ${all}, two cores: ${2 * coreMs}`)
  } finally {
    await scope.run()
  }
})
