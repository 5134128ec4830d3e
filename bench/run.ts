// `npm run bench`: runs the named suites (default: all) and prints them next to their peers.
import { parseArgs } from 'node:util'
import { Endings } from './children.ts'
import type { Plan, Suite } from './plan.ts'
import { describeMachine } from './report.ts'
import { benchAccept } from './suites/accept.ts'
import { benchBlobs } from './suites/blobs.ts'
import { benchChurn } from './suites/churn.ts'
import { benchDashboard } from './suites/dashboard.ts'
import { benchGrowth } from './suites/growth.ts'
import { benchInbound } from './suites/inbound.ts'
import { benchMemory } from './suites/memory.ts'
import { benchMetrics } from './suites/metrics.ts'
import { benchMtaSts } from './suites/mta-sts.ts'
import { benchOutbound } from './suites/outbound.ts'
import { benchProvider } from './suites/provider.ts'
import { benchSend } from './suites/send.ts'
import { benchSoak } from './suites/soak.ts'
import { benchSubmission } from './suites/submission.ts'
import { benchSustained } from './suites/sustained.ts'
import { benchWebhooks } from './suites/webhooks.ts'
import { benchWorkers } from './suites/workers.ts'

const suites: Record<string, Suite> = {
  inbound: benchInbound,
  outbound: benchOutbound,
  submission: benchSubmission,
  'mta-sts': benchMtaSts,
  provider: benchProvider,
  accept: benchAccept,
  send: benchSend,
  sustained: benchSustained,
  memory: benchMemory,
  growth: benchGrowth,
  churn: benchChurn,
  metrics: benchMetrics,
  dashboard: benchDashboard,
  webhooks: benchWebhooks,
  workers: benchWorkers,
  blobs: benchBlobs,
  soak: benchSoak,
}

const usage = `npm run bench -- [${Object.keys(suites).join('] [')}] [--case NAME] [--quick]
    [--rounds N] [--seconds S] [--rate N] [--messages N] [--minutes M] [--out FOLDER]

Every contender of a case is started, then they are loaded in turn (A B C A B C …). The first round is discarded.
  --case NAME  only the cases whose titles have these words in them, such as '5 KB, 10'
  --quick      few cases and small loads: shows that everything runs, measures nothing
  --rounds N   rounds that count (5; quick 2)
  --seconds S  how long one measurement should last (3; quick 0.3), and each sustained load (60; quick 3)
  --messages N growth: messages in the larger store (10,000,000; quick 10,000)
  --rate N     sustained: the highest rate in messages a second, found by a burst if it is not given; soak: mails in (4)
  --minutes M  memory: how long mail goes on after the load (5; quick 0.1); soak: how long it takes
  --out FOLDER soak: the folder of soak.csv and soak.svg (the current folder)
BENCH_LAUNCHER=/older/checkout/bin/posthorn adds that version to the suites outbound and workers.
Peers are installed by bench/peers/install.sh; one that is missing is named in its table.`

const { wanted, plan } = readCommand()
const running = new Set<Endings>()
let interrupted = false
let hasPrinted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop())

console.log(`${await describeMachine()}\n`)
for (const name of wanted) {
  if (interrupted) break
  const scope = new Endings()
  running.add(scope)
  try {
    await suites[name]!(scope, plan)
  } catch (error) {
    console.log(`${name}: failed: ${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await scope.run()
    running.delete(scope)
  }
}

if (plan.caseName !== null && !hasPrinted) {
  console.log(`no case of ${wanted.join(', ')} has '${plan.caseName}' in its title`)
  process.exitCode ??= 1
}

function print(text: string): void {
  hasPrinted = true
  console.log(text)
}

async function stop(): Promise<void> {
  interrupted = true
  for (const scope of running) await scope.run()
  process.exit(130)
}

function readCommand(): { wanted: string[]; plan: Plan } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean' },
        case: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        rate: { type: 'string' },
        messages: { type: 'string' },
        minutes: { type: 'string' },
        out: { type: 'string' },
      },
    })
    const unknown = positionals.find((name) => !(name in suites))
    if (unknown) throw new Error(`there is no suite '${unknown}'`)
    const extent = values.quick ? 'quick' : 'full'
    const [rounds, seconds, sustained, minutes] = extent === 'quick' ? [2, 0.3, 3, 0.1] : [5, 3, 60, 5]
    return {
      wanted: positionals.length > 0 ? positionals : Object.keys(suites),
      plan: {
        rounds: readNumber(values.rounds, rounds),
        targetMs: readNumber(values.seconds, seconds) * 1000,
        sustainedMs: readNumber(values.seconds, sustained) * 1000,
        soakMs: readNumber(values.minutes, minutes) * 60_000,
        messages: values.messages === undefined ? null : readNumber(values.messages, 1),
        topRate: values.rate === undefined ? null : readNumber(values.rate, 1),
        caseName: values.case ?? null,
        outFolder: values.out ?? '.',
        extent,
        print,
      },
    }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(2)
  }
}

function readNumber(text: string | undefined, usual: number): number {
  const value = text === undefined ? usual : Number(text)
  if (!(value > 0)) throw new Error(`'${text}' is not a number above 0`)
  return value
}
