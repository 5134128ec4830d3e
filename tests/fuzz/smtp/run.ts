// `npm run test:fuzz -- smtp`: converses with the real mail server for a number of minutes, and prints the results.
import { parseArgs } from 'node:util'
import { until } from '../../support/until.ts'
import {
  conversationsPerRound,
  type Fault,
  type Figures,
  newFigures,
  playInTurn,
  playRound,
} from './campaign.ts'
import { grown } from './growth.ts'
import { planOf } from './plan.ts'
import { Subject } from './subject.ts'

const help = `usage: npm run test:fuzz -- smtp [--minutes N] [--seed N] [--session N]
  --minutes  for how long conversations are begun (5)
  --seed     makes the same conversations again
  --session  only the one with this number, and prints it`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    session: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
const session = values.session === undefined ? null : Number(values.session)
if (values.help || !(minutes > 0) || !Number.isInteger(seed) || Number.isNaN(session)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

const maxFaults = 10
const progressMs = 20_000
const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

const ends: (() => void | Promise<void>)[] = []
process.exitCode = 1
try {
  const subject = await Subject.start({ after: (end) => void ends.unshift(end) })
  const figures = newFigures(seed)
  if (session !== null) await playOne(subject, figures, session)
  else await playFor(subject, figures, minutes * 60_000)
  print(figures)
  process.exitCode = figures.faults.length === 0 ? 0 : 1
} finally {
  for (const end of ends) await end()
}

async function playOne(subject: Subject, figures: Figures, number: number): Promise<void> {
  console.log(JSON.stringify(planOf(seed, number), null, 1))
  for (const { phases } of await playInTurn(subject, figures, [number]))
    for (const { sent, received } of phases)
      console.log(`\n--- sent\n${sent.toString('latin1')}\n--- received\n${received.toString('latin1')}`)
}

async function playFor(subject: Subject, figures: Figures, durationMs: number): Promise<void> {
  console.error(`seed ${seed}, ${minutes} minutes, ${conversationsPerRound} conversations a round`)
  const startMs = performance.now()
  figures.measures.push(await subject.measure())
  const elapsedMs = () => performance.now() - startMs
  let saidMs = 0
  for (let round = 0; elapsedMs() < durationMs && figures.faults.length < maxFaults; round++) {
    const faultsBefore = figures.faults.length
    await playRound(subject, figures, round)
    for (const fault of figures.faults.slice(faultsBefore)) console.error(describe(fault))
    if (elapsedMs() < saidMs + progressMs && elapsedMs() < durationMs) continue
    saidMs = elapsedMs()
    const { rssBytes, heapBytes } = figures.measures.at(-1)!
    const minutesGone = (elapsedMs() / 60_000).toFixed(1)
    console.error(
      `${minutesGone} min: ${figures.sessions} sessions, ${figures.accepted} accepted, ${figures.faults.length} faults, RSS ${mebibytes(rssBytes)}, heap ${mebibytes(heapBytes)}`,
    )
  }
  if (subject.isRunning) await expectRest(subject, figures)
  const growth = grown(figures.measures)
  if (growth) figures.faults.push({ number: null, what: growth })
}

/** Checks that no sockets and timers of the conversations remain. */
async function expectRest(subject: Subject, figures: Figures): Promise<void> {
  const before = figures.measures[0]!.resources
  const isMore = (after: Record<string, number>) =>
    ['TCPSocketWrap', 'TLSWrap', 'Timeout'].filter((kind) => (after[kind] ?? 0) > (before[kind] ?? 0))
  let left = ''
  await until(
    'the service at rest',
    async () => {
      const { resources } = await subject.measure()
      left = JSON.stringify({ before, after: resources })
      return isMore(resources).length === 0
    },
    { timeoutMs: 120_000, everyMs: 2_000 },
  ).catch(() => figures.faults.push({ number: null, what: `sockets or timers are left: ${left}` }))
  console.error(`at rest: ${left}`)
}

function describe({ number, what }: Fault): string {
  return `✖ ${number === null ? '' : `session ${number}: `}${what}`
}

function print(figures: Figures): void {
  const { sessions, secured, proxied, answered, accepted, copies, unacknowledged, measures, faults } = figures
  const codes = [...figures.codes].sort(([one], [other]) => one - other)
  console.log(`seed        ${seed}`)
  console.log(`sessions    ${sessions}, ${secured} with TLS, ${proxied} behind a proxy`)
  console.log(`answered    ${answered} commands, chunks and messages`)
  console.log(`replies     ${codes.map(([code, times]) => `${code}: ${times}`).join('  ')}`)
  console.log(`accepted    ${accepted} messages; ${copies} copies found, each once and as sent`)
  console.log(`            ${unacknowledged} more whose 250 the client did not wait for`)
  console.log(
    `longest     reply line ${figures.longestReplyBytes} bytes, session ${(figures.longestMs / 1000).toFixed(1)} s`,
  )
  for (const [name, measure] of [
    ['before', measures[0]],
    ['after', measures.at(-1)],
  ] as const)
    if (measure)
      console.log(
        `${name.padEnd(12)}RSS ${mebibytes(measure.rssBytes)}, heap ${mebibytes(measure.heapBytes)}, outside it ${mebibytes(measure.externalBytes)}`,
      )
  for (const fault of faults) console.log(`\n${describe(fault)}`)
  console.log(`\n${faults.length === 0 ? 'no fault' : `${faults.length} faults`}`)
}
