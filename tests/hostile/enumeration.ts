// Tests by timing whether an account exists, with TRIES requests or 10,000: node tests/hostile/enumeration.ts [TRIES].
import { Passwords } from '../../src/flow/people/passwords.ts'
import { questions, timeQuestion } from '../http/app/enumeration.ts'
import { setStage } from '../http/stage.ts'

const tries = Number(process.argv[2] ?? 10_000)

for (const [name, question] of Object.entries(questions)) {
  const ends: (() => unknown)[] = []
  // A service for each case: its mails to people are limited per day, and two cases send one every time.
  const stage = await setStage(
    { after: (end) => void ends.push(end) },
    { trustedProxies: ['127.0.0.0/8'], passwords: new Passwords() },
  )
  const times = await timeQuestion(stage, name, question, Math.ceil(tries / 2))
  const ms = ([known, unknown]: [number, number]) => `${known.toFixed(2)} / ${unknown.toFixed(2)} ms`
  console.log(
    `${name.padEnd(8)} ${times.pairs} pairs  known / unknown: median ${ms(times.medianMs)}, mean ${ms(times.meanMs)}`,
  )
  console.log(
    `         mean difference ${times.differenceMs.toFixed(3)} ms, t = ${times.t.toFixed(2)}, known longer in ${times.longerPercent.toFixed(1)} %`,
  )
  for (const end of ends.reverse()) await end()
}
