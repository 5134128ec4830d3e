// Checks of the code that do not run the service: types, lint, unused code, and the fences.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './tiers.ts'

/** Programs that run one after the other. The first failure ends the check. */
type Check = [program: string, ...args: string[]][]

const tool = (name: string) => join(root, 'node_modules/.bin', name)

/** Regenerates the API types, so that pages and SDK are checked against the current server. */
const types: Check = [
  [process.execPath, join(root, 'scripts/api-types.ts')],
  [tool('tsc')],
  [tool('tsc'), '-p', 'dashboard'],
  [tool('tsc'), '-p', 'site'],
  [tool('tsc'), '-p', 'sdk/typescript', '--noEmit'],
]
const lint: Check = [[tool('biome'), 'check', '--error-on-warnings']]
const unused: Check = [[tool('knip')]]

/** Checks types, lint and unused code in parallel. Prints each result when it is complete. */
export async function runChecks(): Promise<boolean> {
  return await runAll([types, lint, unused])
}

/** Runs the checks of `runChecks` and the fences. */
export async function runChecksAndFences(): Promise<boolean> {
  const files = globSync('tests/fences/*.test.ts', { cwd: root }).sort()
  return await runAll([types, lint, unused, [[process.execPath, '--test', ...files]]])
}

async function runAll(checks: Check[]): Promise<boolean> {
  const passed = await Promise.all(checks.map(runInOrder))
  return passed.every(Boolean)
}

async function runInOrder(check: Check): Promise<boolean> {
  for (const [program, ...args] of check) if (!(await run(program, args))) return false
  return true
}

/** Prints one line on success, or the program's output on failure. */
async function run(program: string, args: string[]): Promise<boolean> {
  const startedMs = performance.now()
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => said.push(piece))
  const [code] = await once(child, 'close')
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  const words = [program, ...args].slice(0, 3).map((word) => word.replace(/.*\//, ''))
  if (code !== 0) process.stdout.write(Buffer.concat(said))
  console.log(`${code === 0 ? '✔' : '✖ FAILED:'} ${words.join(' ')} (${seconds} s)`)
  return code === 0
}
