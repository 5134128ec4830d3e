// The disk of the embedded PostgreSQL breaks under load: calls fail with EIO, or do half of their work. Mail is refused
// while the database cannot keep it. Afterwards the service goes on by itself, and the database is whole.
import { setTimeout as pause } from 'node:timers/promises'
import type { ClientConfig } from 'pg'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { asPostgres, findCorruption } from './corruption.ts'
import { FaultyIo, type IoFault } from './faulty-io.ts'
import { type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoad } from './load.ts'
import { settle } from './settle.ts'

interface PostgresFault extends IoFault {
  name: string
  /** A statement that uses the disk in the way that breaks. */
  sql?: string
}

const log = '/cluster/pg_wal/'
const tables = '/cluster/base/'
/** From then on, PostgreSQL reads its tables from the disk. */
const forget = 'select pg_buffercache_evict_all()'

export const postgresFaults: PostgresFault[] = [
  { name: 'EIO at each flush of the log', operation: 'sync', part: log },
  { name: 'EIO at each write of the log', operation: 'write', part: log },
  { name: 'EIO after half of a write of the log', operation: 'write', kind: 'torn', part: log },
  { name: 'half of each second write of the log', operation: 'write', kind: 'short', every: 2, part: log },
  { name: 'EIO at every fortieth flush of the log', operation: 'sync', every: 40, part: log },
  { name: 'EIO at each write of a table', operation: 'write', part: tables, sql: 'checkpoint' },
  {
    name: 'EIO after half of a write of a table',
    operation: 'write',
    kind: 'torn',
    part: tables,
    sql: 'checkpoint',
  },
  { name: 'EIO at each flush of a table', operation: 'sync', part: tables, sql: 'checkpoint' },
  { name: 'EIO at each read of a table', operation: 'read', part: tables, sql: forget },
  { name: 'half of each read of a table', operation: 'read', kind: 'short', part: tables, sql: forget },
  { name: 'EIO at each open', operation: 'open', part: '/cluster/' },
]

interface Options {
  faults: readonly PostgresFault[]
  rounds: number
  /** The length of each fault. */
  lengthMs: number
  seed: number
  report: (line: string) => void
}

/** Runs the whole campaign. Everything that it started ends with the scope. */
export async function runBrokenPostgres(scope: Scope, options: Options): Promise<Ledger> {
  const { faults, rounds, lengthMs, seed, report } = options
  const io = new FaultyIo(scope)
  const sink = await startSink(scope)
  const posthorn = await startPosthorn(scope, {
    program: await io.wrapPostgres(),
    env: {
      POSTHORN_DELIVERY: 'relay',
      POSTHORN_RELAY_URL: sink.url,
      POSTHORN_RETRY_SCHEDULE: '1s,2s',
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const { api } = await createCaller(posthorn)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  // While no PostgreSQL runs, its address cannot be read.
  const database = posthorn.database()
  await asPostgres(database, 'create extension pg_buffercache')
  const mail = { isRepeated: true, timeoutMs: 60_000 }
  const load = startLoad({ api, inboxes, random: seeded(seed), smtp: () => posthorn.smtp, mail, pauseMs: 50 })
  scope.after(() => load.stop())
  const kills: Kill[] = []
  for (const fault of Array.from({ length: rounds }, () => faults).flat())
    kills.push(await breakOnce({ posthorn, database, io, load, lengthMs, report }, fault))
  await load.stop()
  const { sends, arrivals } = load
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const ledger = reconcile({ sends, arrivals, kills, found }, inboxes[0]!.address.split('@')[1]!)
  const corrupt = await findCorruption(database)
  const status = await posthorn.stop()
  if (status !== 0) load.surprises.push(`SIGTERM at the end gave exit status ${status}`)
  return {
    figures: [['faults of the disk', kills.length], ...ledger.figures],
    violations: [
      ...ledger.violations,
      ...load.surprises,
      ...corrupt.map((row) => `corrupt: ${JSON.stringify(row)}`),
    ],
  }
}

interface Stage {
  posthorn: Posthorn
  database: ClientConfig
  io: FaultyIo
  load: Load
  lengthMs: number
  report: Options['report']
}

/** Breaks the disk for a moment, and waits until both kinds of mail are accepted again. The service must not end. */
async function breakOnce(stage: Stage, fault: PostgresFault): Promise<Kill> {
  const { posthorn, database, io, load, lengthMs, report } = stage
  await untilAccepted(load, `before ${fault.name}`)
  const [pid, postgresPid, fromMs] = [posthorn.pid, posthorn.postgresPid(), Date.now()]
  const refusals = load.refusals.length
  io.begin(fault)
  const { sql } = fault
  for (const untilMs = fromMs + lengthMs; Date.now() < untilMs || io.hits === 0; ) {
    if (Date.now() > fromMs + 30_000) throw new Error(`${fault.name}: no call has failed`)
    // It may fail because of the fault, or because PostgreSQL has ended.
    if (sql) await asPostgres(database, sql).catch(() => {})
    await pause(200)
  }
  const { hits } = io
  io.end()
  const healedMs = Date.now()
  await untilAccepted(load, `after ${fault.name}`)
  const settledMs = Date.now()
  const isSame = posthorn.postgresPid() === postgresPid
  const refused = load.refusals.length - refusals
  report(
    `${fault.name}: ${hits} calls failed, ${refused} tries refused, well ${settledMs - healedMs} ms after its end, ${isSame ? 'the same' : 'a new'} postmaster`,
  )
  if (!posthorn.isRunning() || posthorn.pid !== pid) load.surprises.push(`${fault.name}: the service ended`)
  return { victim: 'PostgreSQL', fromMs, settledMs }
}

/** Waits until a send and a mail that were begun from now on are accepted. */
async function untilAccepted(load: Load, when: string): Promise<void> {
  const [sends, arrivals] = [load.sends.length, load.arrivals.length]
  const isAccepted = () =>
    load.sends.slice(sends).some(({ promised }) => promised) &&
    load.arrivals.slice(arrivals).some(({ outcome }) => outcome === 'acknowledged')
  await until(`sends and mails to be accepted ${when}`, isAccepted, { timeoutMs: 90_000 })
}
