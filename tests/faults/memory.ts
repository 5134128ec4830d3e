// A service with its database in a control group with a limit of memory, under hostile load: with enough memory nothing is
// killed. With too little, the kernel kills again and again, and no acknowledged mail is lost.
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox } from '../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { asPostgres } from './corruption.ts'
import { HostileLoad } from './hostile-load.ts'
import { type Kill, type Ledger, reconcile } from './ledger.ts'
import { type Load, relayTo, seeded, startLoad } from './load.ts'
import { MemoryGroup } from './memory-group.ts'
import { settle } from './settle.ts'

const megabyte = 1 << 20
/** Enough for every end of a campaign. */
const plentyBytes = 4_096 * megabyte

interface Options {
  workers: number
  limitMegabytes: number
  /** The length of the hostile load, unless kills end it. */
  seconds: number
  /** The number of kills after which the load ends; 0 if there may be none. */
  kills: number
  seed: number
  report: (line: string) => void
}

interface Stage {
  group: MemoryGroup
  posthorn: Posthorn
  sink: Sink
  api: Api
  inboxes: Inbox[]
  load: Load
  hostile: HostileLoad
  hostileInbox: Inbox
}

export async function runMemory(scope: Scope, options: Options): Promise<Ledger> {
  const { workers, limitMegabytes, report } = options
  const stage = await setStage(scope, options)
  const { group, posthorn, hostile, load } = stage
  const kills = await watch(stage, options)
  const fromMs = Date.now() - 100
  const highest = Math.round(group.highestBytes / megabyte)
  await hostile.stop()
  report(`${limitMegabytes} MiB, ${workers} workers: ${JSON.stringify([...hostile.answers])}`)
  await load.stop()
  const killed = group.kills
  group.limit(plentyBytes)
  await until('the service to be ready', () => isReadyAgain(posthorn), { timeoutMs: 90_000 })
  // The kernel may have killed once more while the loads ended.
  if (killed > kills.length) kills.push({ victim: 'service and PostgreSQL', fromMs, settledMs: Date.now() })
  const ledger = await reckon(stage, kills)
  const status = await posthorn.stop()
  return {
    figures: [
      ['limit, MiB', limitMegabytes],
      ['highest use with cached files, MiB', highest],
      ['processes killed for memory', killed],
      ...ledger.figures,
    ],
    violations: [
      ...ledger.violations,
      ...(options.kills === 0 && killed > 0 ? [`${killed} processes were killed for memory`] : []),
      ...(options.kills > killed ? [`only ${killed} processes were killed for memory`] : []),
      ...(hostile.acknowledged.length === 0 ? ['no hostile mail was accepted'] : []),
      ...(status === 0 ? [] : [`SIGTERM at the end gave exit status ${status}`]),
    ],
  }
}

async function setStage(scope: Scope, { workers, limitMegabytes, seed }: Options): Promise<Stage> {
  const sink = await startSink(scope)
  const group = new MemoryGroup(scope, plentyBytes)
  const posthorn = await startPosthorn(scope, {
    program: group.program,
    env: {
      POSTHORN_WORKERS: String(workers),
      ...relayTo(sink),
    },
  })
  const { api, secret } = await createCaller(posthorn)
  const [hostileInbox, ...inboxes] = await Promise.all([1, 2, 3].map(() => api.createInbox()))
  group.limit(limitMegabytes * megabyte)
  const mail = { isRepeated: true, timeoutMs: 60_000 }
  const load = startLoad({ api, inboxes, random: seeded(seed), smtp: () => posthorn.smtp, mail, senders: 2 })
  const hostile = new HostileLoad({ posthorn, api, secret, inbox: hostileInbox! })
  scope.after(async () => void (await Promise.all([load.stop(), hostile.stop()])))
  return { group, posthorn, sink, api, inboxes, load, hostile, hostileInbox: hostileInbox! }
}

/** Watches the load, and restarts a service that has ended, as systemd does. Returns the kills. */
async function watch({ group, posthorn }: Stage, options: Options): Promise<Kill[]> {
  const kills: Kill[] = []
  const untilMs = Date.now() + options.seconds * 1_000
  for (let seen = 0; Date.now() < untilMs && (options.kills === 0 || seen < options.kills); ) {
    await pause(50)
    if (group.kills === seen && posthorn.isRunning()) continue
    const fromMs = Date.now() - 100
    while (!(await isReadyAgain(posthorn))) await pause(50)
    seen = group.kills
    kills.push({ victim: 'service and PostgreSQL', fromMs, settledMs: Date.now() })
    options.report(`kill ${seen}: ready again after ${Date.now() - fromMs} ms`)
  }
  return kills
}

/** Starts a service that has ended, and returns whether it is ready. */
async function isReadyAgain(posthorn: Posthorn): Promise<boolean> {
  // The start may be killed as well.
  if (!posthorn.isRunning()) await posthorn.start().catch(() => {})
  // No answer while it starts.
  return (await fetch(`${posthorn.operator}/readyz`).catch(() => null))?.status === 200
}

async function reckon(stage: Stage, kills: Kill[]): Promise<Ledger> {
  const { api, inboxes, sink, load, hostile } = stage
  const { sends, arrivals } = load
  // The copies of hostile sends are not in the book.
  const ours = new Set(sends.flatMap(({ recipients }) => recipients))
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  found.copies = found.copies.filter(({ recipient }) => ours.has(recipient))
  const ledger = reconcile({ sends, arrivals, kills, found }, inboxes[0]!.address.split('@')[1]!)
  const lost = await findLost(stage)
  return {
    figures: [
      ...ledger.figures,
      ['hostile mails, 250 read', hostile.acknowledged.length],
      ['  lost', lost.length],
    ],
    violations: [
      ...ledger.violations,
      ...load.surprises,
      ...lost.map((id) => `${id} was acknowledged, and is not there`),
    ],
  }
}

/** Returns the hostile mails that were acknowledged and are not stored. Their texts are too large for an export. */
async function findLost({ posthorn, api, hostile, hostileInbox }: Stage): Promise<string[]> {
  const ask = (sql: string) => asPostgres<{ id: string; name: string }>(posthorn.database(), sql)
  const isFiled = async () => (await ask('select id from spool limit 1')).length === 0
  await until('hostile mails to be filed', isFiled, { timeoutMs: 300_000, everyMs: 250 })
  const inbox = `inbox_id = '${hostileInbox.id}' and direction = 'inbound'`
  const rows = await ask(`select id, internet_message_id as name from message where ${inbox}`)
  const stored = new Set<string>()
  for (const { id, name } of rows) {
    // A mail that takes too long to parse is filed under a new Message-ID.
    const source = name.includes('hostile-') ? name : String(await api.bytes(`/v1/messages/${id}/source`))
    stored.add(/<hostile-\d+@sender\.test>/.exec(source)?.[0] ?? '')
  }
  return hostile.acknowledged.filter((id) => !stored.has(id))
}
