// `npm run test:faults -- --kills 50 --postgres-kills 10` runs the fault campaign, with exit 1 on any violation.
// `--of worker` kills one worker of four instead, and `--of node` one node of three.
// Options for other faults, one after another: `--mount` (the disk of the blob folder is lost and returns), `--freeze` (a
// node is stopped for a minute), `--dark` (a node's machine is cut off for a minute), `--balancer` (restarts behind
// HAProxy), `--leader 10` (ten losses of the leader of a Patroni cluster, of all four kinds in turn), `--broken-blobs 3` and
// `--broken-postgres 3` (three rounds in which calls on the disk fail with EIO or do half of their work), `--broken-s3 3`
// (S3 that is slow, fails or forgets), `--partition 3` (networks to the database that lose or delay packets), `--memory 1024`
// (hostile load within 1,024 MiB, with `--workers` and `--seconds`), `--submitted 1000` (mails submitted by SMTP during
// kills), `--clock` (the database's clock jumps).
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import type { Scope } from '../support/until.ts'
import { runBalancer } from './balancer.ts'
import { blobFaults, runBrokenBlobs } from './broken-blobs.ts'
import { postgresFaults, runBrokenPostgres } from './broken-postgres.ts'
import { runBrokenS3, s3Faults } from './broken-s3.ts'
import { runCampaign } from './campaign.ts'
import { clockOffsets, missingForClocks, runClockSteps } from './clock-step.ts'
import { missingForFaultyIo, missingForFaultyPostgres } from './faulty-io.ts'
import { runDark, runFreeze } from './hang.ts'
import { type Loss, losses, runLeaderLosses } from './leader-loss.ts'
import { type Ledger, printLedger } from './ledger.ts'
import { runMemory } from './memory.ts'
import { missingForMemory } from './memory-group.ts'
import { runMountLoss } from './mount.ts'
import { missingForNetworks } from './net-namespace.ts'
import { runOneOfSeveral } from './one-of-several.ts'
import { netFaults, runPartition } from './partition.ts'
import { missingForPatroni, type Pace } from './patroni.ts'
import { runSubmitted } from './submitted.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    'postgres-kills': { type: 'string', default: '10' },
    of: { type: 'string', default: 'service' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    mount: { type: 'boolean', default: false },
    freeze: { type: 'boolean', default: false },
    dark: { type: 'boolean', default: false },
    balancer: { type: 'boolean', default: false },
    restarts: { type: 'string', default: '20' },
    leader: { type: 'string' },
    ttl: { type: 'string', default: '12' },
    'broken-blobs': { type: 'string' },
    'broken-postgres': { type: 'string' },
    'broken-s3': { type: 'string' },
    partition: { type: 'string' },
    submitted: { type: 'string' },
    clock: { type: 'boolean', default: false },
    memory: { type: 'string' },
    workers: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '60' },
    'memory-kills': { type: 'string', default: '0' },
  },
})
const report = (line: string) => console.log(line)
const seed = Number(values.seed)

interface Fault {
  name: string
  /** The reason why this machine cannot run it; null if it can. */
  missing?: () => string | null
  /** Null if it turned out that this machine cannot run it. */
  run(scope: Scope): Promise<Ledger | null>
}

const kills: Fault = {
  name: 'kills',
  run: (scope) => {
    const [part, count] = [values.of, Number(values.kills)]
    if (part === 'worker' || part === 'node')
      return runOneOfSeveral(scope, { part, kills: count, seed, report })
    if (part !== 'service') throw new Error(`--of ${part}: service, worker or node`)
    return runCampaign(scope, { kills: count, postgresKills: Number(values['postgres-kills']), seed, report })
  },
}

const others: Fault[] = [
  { name: 'mount', run: (scope) => runMountLoss(scope, { report }) },
  { name: 'freeze', run: (scope) => runFreeze(scope, { seed, report }) },
  { name: 'dark', missing: missingForNetworks, run: (scope) => runDark(scope, { seed, report }) },
  {
    name: 'balancer',
    missing: () => (hasProgram('haproxy', '-v') ? null : 'it needs HAProxy: apt-get install haproxy'),
    run: (scope) => runBalancer(scope, { restarts: Number(values.restarts), seed, report }),
  },
  {
    name: 'leader',
    missing: missingForPatroni,
    run: (scope) =>
      runLeaderLosses(scope, { plan: planLosses(), pace: paceOf(Number(values.ttl)), seed, report }),
  },
  {
    name: 'broken-blobs',
    missing: missingForFaultyIo,
    run: (scope) =>
      runBrokenBlobs(scope, { faults: blobFaults, rounds: Number(values['broken-blobs']), report }),
  },
  {
    name: 'broken-postgres',
    missing: missingForFaultyPostgres,
    run: (scope) =>
      runBrokenPostgres(scope, {
        faults: postgresFaults,
        rounds: Number(values['broken-postgres']),
        lengthMs: 2_000,
        seed,
        report,
      }),
  },
  {
    name: 'broken-s3',
    run: (scope) => runBrokenS3(scope, { faults: s3Faults, rounds: Number(values['broken-s3']), report }),
  },
  {
    name: 'partition',
    missing: missingForNetworks,
    run: (scope) => {
      const rounds = Number(values.partition)
      return runPartition(scope, { faults: netFaults, rounds, lengthMs: 25_000, seed, report })
    },
  },
  {
    name: 'submitted',
    run: (scope) => runSubmitted(scope, { messages: Number(values.submitted), seed, report }),
  },
  {
    name: 'clock',
    missing: missingForClocks,
    run: (scope) => runClockSteps(scope, { offsets: clockOffsets, lengthMs: 20_000, seed, report }),
  },
  {
    name: 'memory',
    missing: missingForMemory,
    run: (scope) =>
      runMemory(scope, {
        limitMegabytes: Number(values.memory),
        workers: Number(values.workers),
        seconds: Number(values.seconds),
        kills: Number(values['memory-kills']),
        seed,
        report,
      }),
  },
]

/** All four kinds in turn. */
function planLosses(): Loss[] {
  return Array.from({ length: Number(values.leader) }, (_, n) => losses[n % losses.length]!)
}

/** Patroni requires `loop_wait + 2 * retry_timeout <= ttl`. */
function paceOf(ttl: number): Pace {
  return { ttl, loop_wait: 2, retry_timeout: Math.floor((ttl - 2) / 2) }
}

function hasProgram(name: string, word: string): boolean {
  return spawnSync(name, [word]).status === 0
}

/** Returns whether it ran without a violated bound. Everything that it started has ended by then, whatever happened. */
async function runFault({ name, missing, run }: Fault): Promise<boolean> {
  const reason = missing?.() ?? null
  if (reason !== null) {
    report(`${name} was not tried: ${reason}`)
    return false
  }
  report(`--- ${name}, seed ${seed}`)
  const endings: (() => void | Promise<void>)[] = []
  const endAll = async () => {
    let hasEnded = true
    for (const end of endings.reverse().splice(0)) {
      try {
        await end()
      } catch (error) {
        // The other resources must end as well: processes, namespaces, folders.
        report(`at the end of ${name}: ${(error as Error).message}`)
        hasEnded = false
      }
    }
    return hasEnded
  }
  const interrupted = () => void endAll().finally(() => process.exit(130))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  let isKept = false
  try {
    const ledger = await run({ after: (end) => void endings.push(end) })
    report(ledger ? printLedger(ledger) : `${name} was not tried: this user may not mount`)
    isKept = ledger !== null && ledger.violations.length === 0
  } catch (error) {
    report(`${name} broke off: ${(error as Error).stack}`)
  }
  process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
  return (await endAll()) && isKept
}

const chosen = others.filter(({ name }) => (values as Record<string, unknown>)[name])
let isKept = true
for (const fault of chosen.length > 0 ? chosen : [kills]) isKept = (await runFault(fault)) && isKept
process.exitCode = isKept ? 0 : 1
