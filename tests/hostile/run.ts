// `npm run test:hostile [-- WORD…]`: attacks by one tenant or one stranger on a running service, printed as a table.

import type { Attack, Outcome } from './attack.ts'
import { crowdingAttacks } from './crowding.ts'
import { deliveryAttacks } from './delivery.ts'
import { falsifyingAttacks } from './falsifying.ts'
import { floodingAttacks } from './flooding.ts'
import { operatingAttacks } from './operating.ts'
import { readingAttacks } from './reading.ts'
import { searchingAttacks } from './searching.ts'

const all = [
  ...deliveryAttacks,
  ...readingAttacks,
  ...searchingAttacks,
  ...floodingAttacks,
  ...falsifyingAttacks,
  ...operatingAttacks,
  ...crowdingAttacks,
]

/** Runs the attack on a service of its own, which has ended before the next begins. */
async function attempt({ run }: Attack): Promise<Outcome> {
  const endings: (() => void | Promise<void>)[] = []
  try {
    return await run({ after: (end) => void endings.push(end) })
  } catch (error) {
    return { now: `FAILED: ${(error as Error).message.slice(0, 300)}`, held: false }
  } finally {
    for (const end of endings.reverse()) await end()
  }
}

function printRow({ name, before }: Attack, { now, held }: Outcome, seconds: number): void {
  console.log(
    `${held ? '✔' : '✖'} ${name} (${seconds.toFixed(0)} s)\n    before: ${before}\n    now:    ${now}`,
  )
}

const words = process.argv.slice(2)
const chosen = all.filter(({ name }) => words.every((word) => name.includes(word)))
if (chosen.length === 0) {
  console.error(
    `no attack is called ${words.join(' ')}; there are:\n${all.map(({ name }) => name).join('\n')}`,
  )
  process.exit(2)
}
const results: { attack: Attack; outcome: Outcome }[] = []
for (const [index, attack] of chosen.entries()) {
  console.error(`${index + 1} of ${chosen.length}: ${attack.name} …`)
  const startMs = performance.now()
  const outcome = await attempt(attack)
  results.push({ attack, outcome })
  printRow(attack, outcome, (performance.now() - startMs) / 1000)
}
console.log('\n| Attack | Before | Now | |\n|---|---|---|---|')
for (const { attack, outcome } of results)
  console.log(
    `| ${attack.name} | ${attack.before} | ${outcome.now} | ${outcome.held ? 'held' : 'NOT HELD'} |`,
  )
const failed = results.filter(({ outcome }) => !outcome.held).length
console.log(`\n${results.length - failed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
