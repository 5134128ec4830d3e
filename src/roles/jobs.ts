// What a node with the jobs role does by itself: filing, reading of reports, scanning, ends, purges, checks and roll-ups.
import { join } from 'node:path'
import type { Log } from '../base/log.ts'
import { Rotation } from '../base/rotation.ts'
import { Tickets } from '../base/tickets.ts'
import { UnderWay } from '../base/under-way.ts'
import { partCount } from '../blobs/disk.ts'
import { Resolver } from '../dns/resolver.ts'
import { expireDeliveries } from '../flow/delivering/end-deliveries.ts'
import { recheckDomains } from '../flow/domains/verify-domain.ts'
import { purgeDeleted } from '../flow/mailbox/delete-inbox.ts'
import { makeSearchableAtEase } from '../flow/mailbox/make-searchable.ts'
import { Scanner } from '../flow/mailbox/scan.ts'
import { type FilingDeps, fileSlow, fileSpooled } from '../flow/receiving/file.ts'
import { dropOldMail, readReports } from '../flow/reports/read-report.ts'
import { foldMetrics } from '../flow/upkeep/fold-metrics.ts'
import { purgeContents } from '../flow/upkeep/purge-contents.ts'
import { purgeStale } from '../flow/upkeep/purge-stale.ts'
import { purgeTombstones } from '../flow/upkeep/purge-tombstones.ts'
import { removeSettled } from '../flow/upkeep/remove-settled.ts'
import { BlobSweeper } from '../flow/upkeep/sweep-blobs.ts'
import type { Foundation } from '../foundation.ts'
import { ParsePool } from '../mail/parse-pool.ts'
import { analyzeGrown } from '../postgres/analyze.ts'
import { Clamd } from '../scan/clamd.ts'
import { Loop } from '../worker/loop.ts'
import type { Certificate } from './certificate.ts'
import { dmarcReportLoop } from './dmarc-reports.ts'
import type { Mx } from './mx.ts'
import type { Signals } from './part.ts'

const filingBatch = 128
/** After a batch that was not full the next one waits so long: a batch costs as much as several mails. */
const filingPauseMs = 50
/** While the mail server is saturated, filing yields to it for so long: its senders hold connections, spooled mail does not. */
const maxFilingYieldMs = 5_000
/** How often mail that is slow to read is polled for. */
const slowFilingMs = 200
/** Mail that takes longer to read is shown as text. */
const readingMs = 10_000
/** Making words of messages yields to everything else for so long. */
const maxSearchYieldMs = 10_000
const searchPollMs = 100
/** A node whose main thread rests half of the time can do what can wait. */
const busyShare = 0.5
const purgeBatch = 500
const reportBatch = 64
const domainBatch = 20
const sweepBatch = 500
/** Each part of the blob store once a day. */
const sweepMs = 86_400_000 / partCount
/** Messages that are scanned at once; each holds its message and a database connection meanwhile. */
const scanWorkers = 4

/** Starts the jobs of this node. */
export function startJobs(
  foundation: Foundation,
  { mtaStsMode }: Pick<Certificate, 'mtaStsMode'>,
  signals: Signals,
  mx: Mx,
): { stop(): Promise<void> } {
  const { settings, db, clock, log, blobs, secretBox } = foundation
  const filingPool = new ParsePool({ threads: 1, timeoutMs: readingMs })
  // A thread for what other mail must not wait behind: slow and large mail, reports, words.
  const parsePool = new ParsePool({ threads: 1, timeoutMs: readingMs })
  const underWay = (work: string) => new UnderWay(join(settings.dataDir, work))
  const onFiled: FilingDeps['onFiled'] = (messages) =>
    signals.grown.wake(messages.map(({ inboxId }) => inboxId))
  const shared = {
    db,
    clock,
    log,
    blobs,
    parsePool: filingPool,
    rotation: new Rotation(),
    onFiled,
    atHand: mx.atHand,
  }
  const filers = { ...shared, underWay: underWay('being-filed'), tickets: new Tickets() }
  const secondFiler = {
    ...{ ...filers, rotation: new Rotation(shared.rotation.slow) },
    ...{ underWay: underWay('being-filed-second'), maxFailures: 0 },
  }
  const slow = { ...shared, parsePool, underWay: underWay('being-filed-slowly') }
  const { filing, secondFiling } = filingLoops(filers, secondFiler, signals, mx)
  const fileSlowly = async () => {
    const hasFiled = await fileSlow(slow, filingBatch)
    if (hasFiled) signals.announced.wake()
    return hasFiled
  }
  const reporting = {
    ...{ db, clock, log, blobs, parsePool, secretBox, rotation: new Rotation() },
    underWay: underWay('reports-being-read'),
  }
  const readReport = () => readReports(reporting, reportBatch)
  const dropOld = () => dropOldMail(reporting, purgeBatch)
  const expire = async () => (await expireDeliveries({ db, clock })) > 0
  const resolver = new Resolver({ servers: settings.dnsServers })
  const checking = { db, clock, log, resolver, mailHost: settings.mailHost, mtaStsMode }
  const recheck = () => recheckDomains(checking, domainBatch)
  const indexing = { db, log, parsePool, rotation: new Rotation() }
  const sweeper = new BlobSweeper({ db, clock, log, blobs })
  const loops = [
    filing,
    secondFiling,
    new Loop({ name: 'file slow mail', run: fileSlowly, intervalMs: slowFilingMs, log }),
    new Loop({ name: 'expire', run: expire, intervalMs: 1_000, log }),
    new Loop({ name: 'read reports', run: readReport, intervalMs: 1_000, log }),
    new Loop({ name: 'drop old mail', run: dropOld, intervalMs: 60_000, log }),
    new Loop({ name: 'analyze', run: () => analyzeGrown(db), intervalMs: 2_000, log }),
    ...purgeLoops(foundation),
    new Loop({ name: 'sweep blobs', run: () => sweeper.sweepNext(sweepBatch), intervalMs: sweepMs, log }),
    new Loop({ name: 'check domains', run: recheck, intervalMs: 2_000, log }),
    searchLoop(() => makeSearchableAtEase(indexing), log),
    dmarcReportLoop(foundation, { resolver, parsePool, signals }),
    new Loop({ name: 'fold metrics', run: () => foldMetrics({ db, clock }), intervalMs: 2_000, log }),
  ]
  const scanner = settings.clamd
    ? new Scanner({ db, clock, log, blobs, clamd: new Clamd(settings.clamd) })
    : null
  if (scanner) loops.push(...scanLoops(scanner, log))
  for (const loop of loops) loop.start()
  return {
    stop: async () => {
      scanner?.close()
      await Promise.all(loops.map((loop) => loop.stop()))
      await Promise.all([filingPool.close(), parsePool.close()])
    },
  }
}

/** What is kept no longer goes, a little at a time. */
function purgeLoops({ settings, db, clock, log, blobs }: Foundation): Loop[] {
  const { retentionMs, retryLifetimeMs } = settings
  const purge = () => purgeDeleted({ db, blobs }, purgeBatch)
  const purgeOld = () => purgeContents({ db, clock }, retryLifetimeMs, purgeBatch)
  const purgeStones = () => purgeTombstones({ db, clock }, purgeBatch)
  const purgePeople = () => purgeStale({ db, clock }, purgeBatch)
  const loops = [
    new Loop({ name: 'purge', run: purge, intervalMs: 2_000, log }),
    new Loop({ name: 'purge contents', run: purgeOld, intervalMs: 60_000, log }),
    new Loop({ name: 'purge tombstones', run: purgeStones, intervalMs: 60_000, log }),
    new Loop({ name: 'purge stale', run: purgePeople, intervalMs: 600_000, log }),
  ]
  if (retentionMs === null) return loops
  const remove = () => removeSettled({ db, clock }, retentionMs, purgeBatch)
  return [...loops, new Loop({ name: 'remove settled', run: remove, intervalMs: 60_000, log })]
}

function searchLoop(run: () => Promise<boolean>, log: Log): Loop {
  const yields = { now: askBusy(), everyMs: searchPollMs, maxMs: maxSearchYieldMs }
  return new Loop({ name: 'make searchable', run, intervalMs: 1_000, yields, log })
}

/** Asks whether this node's main thread has been busy since it was asked last. */
function askBusy(): () => boolean {
  let before = performance.eventLoopUtilization()
  return () => {
    const { utilization } = performance.eventLoopUtilization(before)
    before = performance.eventLoopUtilization()
    return utilization > busyShare
  }
}

/** The second worker takes one batch whenever there is more than one: the first one polls, and yields. */
function filingLoops(
  first: FilingDeps,
  second: FilingDeps,
  { filing, announced }: Signals,
  mx: Pick<Mx, 'isSaturated'>,
): { filing: Loop; secondFiling: Loop } {
  const { log } = first
  const file = (deps: FilingDeps) => fileSpooled(deps, filingBatch).finally(() => announced.wake())
  const fileSecond = () => file(second).then(() => false)
  const secondFiling = new Loop({ name: 'file second', run: fileSecond, intervalMs: 60_000, log })
  const fileFirst = async () => {
    const isMore = await file(first)
    if (isMore) secondFiling.wake()
    return isMore
  }
  const yields = { now: () => mx.isSaturated(), everyMs: filingPauseMs, maxMs: maxFilingYieldMs }
  const options = { signal: filing, intervalMs: 1_000, collectMs: filingPauseMs, yields, log }
  return { filing: new Loop({ name: 'file', run: fileFirst, ...options }), secondFiling }
}

function scanLoops(scanner: Scanner, log: Log): Loop[] {
  const scan = { name: 'scan', run: () => scanner.scanNext(), intervalMs: 1_000, log }
  return Array.from({ length: scanWorkers }, () => new Loop(scan))
}
