// `npm run test:fuzz`: sends requests generated from the document to each operation, and prints a table of the answers.
import { parseArgs } from 'node:util'
import { boundariesOf } from './boundary.ts'
import { fuzz, type Tally, type Way, ways } from './campaign.ts'
import { type Operation, readOperations } from './document.ts'
import { World } from './world.ts'

const help = `usage: npm run test:fuzz -- [--requests N] [--seed N] [--way ${ways.join('|')}] [--operation TEXT]
  --requests   of each operation and way (200); each bound is asked once
  --seed       makes the same requests again
  --operation  only those whose name holds this, such as "POST /v1/send"`

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    way: { type: 'string' },
    operation: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})
const [requests, seed] = [Number(values.requests), Number(values.seed)]
if (values.help || !(requests > 0) || !Number.isInteger(seed)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

const ends: (() => void | Promise<void>)[] = []
process.exitCode = 1
try {
  const world = await World.create({ after: (end) => void ends.unshift(end) })
  const operations = (await readOperations(world.base)).filter(({ name }) => name.includes(values.operation))
  console.error(`seed ${seed}, ${requests} requests each of ${operations.length} operations`)
  const failed = await runAll(world, operations)
  process.exitCode = failed === 0 && operations.length > 0 ? 0 : 1
} finally {
  for (const end of ends) await end()
}

async function runAll(world: World, operations: Operation[]): Promise<number> {
  const chosen = ways.filter((way) => values.way === undefined || way === values.way)
  const [tallies, faults]: [Tally[], string[]] = [[], []]
  for (const way of chosen)
    for (const operation of operations) {
      if (way === 'boundary' && boundariesOf(operation).length === 0) continue
      const startedMs = performance.now()
      try {
        await world.fold()
        tallies.push(await fuzz(world, operation, way, { requests, seed }))
      } catch (error) {
        faults.push(`✖ ${way}: ${(error as Error).message}`)
      }
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
      console.error(
        `${way} ${operation.name}: ${seconds} s${faults.length > 0 ? `, ${faults.length} failed` : ''}`,
      )
    }
  if (!(await world.isAlive())) faults.push('✖ the service does not answer any more')
  if (world.log().includes('"level":50')) faults.push('✖ the service has logged a fault of its own')
  print(tallies)
  for (const fault of faults) console.log(`\n${fault}`)
  console.log(`\n${tallies.length} passed, ${faults.length} failed`)
  return faults.length
}

function print(tallies: Tally[]): void {
  const width = Math.max(0, ...tallies.map(({ operation }) => operation.length))
  for (const { operation, way, requests, byStatus } of tallies)
    console.log(
      `${operation.padEnd(width)}  ${way.padEnd(8)}  ${String(requests).padStart(6)}  ${answers(byStatus)}`,
    )
  for (const way of ways satisfies readonly Way[]) {
    const sum = tallies.reduce((sum, tally) => sum + (tally.way === way ? tally.requests : 0), 0)
    console.log(`${'in all'.padEnd(width)}  ${way.padEnd(8)}  ${String(sum).padStart(6)}`)
  }
}

function answers(byStatus: Map<number, number>): string {
  return [...byStatus]
    .sort(([one], [other]) => one - other)
    .map(([status, count]) => `${status}: ${count}`)
    .join('  ')
}
