// The jobs role of a node: filing, reading of reports, scanning, expiry, purges, checks and roll-ups.
import type { OrganizationId, SubmissionId } from '../base/ids.ts'
import { divided } from '../base/share.ts'
import { Signal } from '../base/signal.ts'
import { partCount } from '../blobs/blobs.ts'
import { sentContentMs } from '../config/setting-values.ts'
import { Claims } from '../flow/claims.ts'
import { expireDeliveries } from '../flow/delivering/end-deliveries.ts'
import { switchManagedKeys } from '../flow/domains/managed-keys.ts'
import { recheckDomains, recheckDue } from '../flow/domains/verify-domain.ts'
import { purgeDeleted } from '../flow/mailbox/delete-inbox.ts'
import { OldMessages } from '../flow/mailbox/old-messages.ts'
import { type FilingDeps, fileSlow, fileSpooled } from '../flow/receiving/file.ts'
import { Scanner } from '../flow/receiving/scan.ts'
import { dropOldMail, readReports } from '../flow/reports/read-report.ts'
import { makeSearchableAtEase } from '../flow/searching/make-searchable.ts'
import { endSearches } from '../flow/upkeep/end-searches.ts'
import { foldingDue, foldMetrics } from '../flow/upkeep/fold-metrics.ts'
import { foldStoredBytes } from '../flow/upkeep/fold-stored.ts'
import { purgeContents } from '../flow/upkeep/purge-contents.ts'
import { purgeStale } from '../flow/upkeep/purge-stale.ts'
import { purgeTombstones } from '../flow/upkeep/purge-tombstones.ts'
import { removeOldAudit } from '../flow/upkeep/remove-old-audit.ts'
import { removeSettled } from '../flow/upkeep/remove-settled.ts'
import { BlobSweeper } from '../flow/upkeep/sweep-blobs.ts'
import type { Foundation } from '../foundation.ts'
import { ParsePool } from '../mail/parse-pool.ts'
import { analysisDue, analyzeGrown } from '../postgres/analyze.ts'
import { type AttachmentScanner, BuiltInScanner } from '../scan/built-in.ts'
import { Clamd } from '../scan/clamd.ts'
import { storedDue } from '../store/accounts/usage.ts'
import { managedKeysDue } from '../store/domains/dkim-keys.ts'
import { inboxPurgeDue } from '../store/mailbox/removal.ts'
import { indexingDue } from '../store/mailbox/searched-inboxes.ts'
import { expiryDue } from '../store/sending/expired-deliveries.ts'
import { type WorkKind, workDue } from '../store/work.ts'
import type { DueWork } from '../worker/due-work.ts'
import { Loop } from '../worker/loop.ts'
import type { Membership } from '../worker/membership.ts'
import type { Certificate } from './certificate.ts'
import { dmarcReportLoop } from './dmarc-reports.ts'
import { startRefreshing } from './mta-sts.ts'
import type { RawCache } from './mx.ts'
import type { Signals } from './signals.ts'
import { startTlsReports } from './tls-reports.ts'

const filingBatch = 128
/**
 * The wait after a batch that was not full, because a batch costs as much as several mails. Measured: CPU of all programs
 * over 10 s of mail of 5 KB from ten sessions.
 * - At 400 mails a second: 1,650 to 1,890 us a mail with the wait, 2,600 to 2,980 without.
 * - At the highest rate: 860 to 930 us a mail with the wait, 1,060 to 1,120 without.
 * 100 ms save 5 % more.
 */
const filingPauseMs = 50
/** Mail that takes longer to parse is shown as text. */
const readingMs = 10_000
const purgeBatch = 500
/** Messages deleted in one commit, which holds the locks of their inboxes. */
const oldMessageBatch = 100
const reportBatch = 64
const domainBatch = 20
const sweepBatch = 500
/** How often DNS is polled while keys of the managed domain wait to be published. */
const ownKeysMs = 5_000
/** How often rows past their retention are removed. Each run costs up to four statements. */
const retentionMs = 600_000
/** Sweeps each part of the blob store once a day. */
const sweepMs = 86_400_000 / partCount
/** Messages scanned concurrently. Each worker holds its message during the scan. */
const scanWorkers = 4
/** The first workers of a service scan, as many as can divide an organization's part exactly. */
const maxScanning = 2

export function startJobs(
  foundation: Foundation,
  { mtaStsMode }: Pick<Certificate, 'mtaStsMode'>,
  signals: Signals,
  { membership, dueWork, rawCache }: { membership: Membership; dueWork: DueWork; rawCache: RawCache },
): { stop(): Promise<void> } {
  const { settings, db, clock, log, blobs, worker } = foundation
  const filingPool = new ParsePool({ threads: 1, timeoutMs: readingMs })
  // A second thread for slow and large mail, reports and search words, so that other mail never waits for them.
  const parsePool = new ParsePool({ threads: 1, timeoutMs: readingMs })
  const nodeId = () => membership.nodeId
  const claimsOf = (kind: WorkKind, onEnded = () => {}) => new Claims({ db, clock, nodeId, onEnded }, kind)
  const onFiled: FilingDeps['onFiled'] = (messages) => {
    signals.announced(messages.map(({ inboxId }) => inboxId))
  }
  const filing = { db, clock, log, blobs, slow: new Set<OrganizationId>(), rawCache, onFiled }
  const expire = async () => {
    const isMore = (await expireDeliveries({ db, clock })) > 0
    if (isMore) signals.announced()
    return isMore
  }
  const indexing = { db, log, parsePool, cursor: { last: null }, olderCursor: { last: null } }
  const sweeper = new BlobSweeper({ db, clock, log, blobs })
  const loops = [
    ...filingLoops(
      { ...filing, parsePool: filingPool, claims: claimsOf('mail') },
      { ...filing, parsePool, claims: claimsOf('mail') },
      signals,
      dueWork,
    ),
    dueWork.createLoop(expiryDue, { name: 'expire', run: expire }),
    ...reportLoops(foundation, { parsePool, claims: claimsOf('report', () => signals.announced()), dueWork }),
    dueWork.createLoop(analysisDue, { name: 'analyze', run: () => analyzeGrown(db) }),
    ...purgeLoops(foundation, dueWork),
    new Loop({ name: 'sweep blobs', run: () => sweeper.sweepNext(sweepBatch), intervalMs: sweepMs, log }),
    ...domainLoops(foundation, mtaStsMode, dueWork),
    dueWork.createLoop(indexingDue, { name: 'make searchable', run: () => makeSearchableAtEase(indexing) }),
    dmarcReportLoop(foundation, { parsePool, signals }),
    dueWork.createLoop(foldingDue, { name: 'fold metrics', run: () => foldMetrics({ db, clock }) }),
    dueWork.createLoop(storedDue, { name: 'fold stored bytes', run: () => foldStoredBytes({ db }) }),
  ]
  const scans = scannerOf(settings)
  const scanClaims = claimsOf('scan', () => signals.scanned())
  const scanning = Math.min(settings.workers, maxScanning)
  const scanner =
    scans && worker.number <= scanning
      ? new Scanner({ db, clock, log, blobs, workers: scanning, clamd: scans, claims: scanClaims })
      : null
  if (scanner) loops.push(...scanLoops(scanner, dueWork, divided(scanWorkers, scanning)))
  for (const loop of loops) loop.start()
  const refreshing = startRefreshing(foundation)
  const tlsReports = startTlsReports(foundation, { parsePool, signals })
  return {
    stop: async () => {
      scanner?.close()
      await Promise.all([refreshing.stop(), tlsReports.stop(), ...loops.map((loop) => loop.stop())])
      await Promise.all([filingPool.close(), parsePool.close()])
    },
  }
}

/** Returns clamd, the built-in scanner in development, or null. */
function scannerOf({ clamd, isDevelopment }: Foundation['settings']): AttachmentScanner | null {
  if (clamd) return new Clamd(clamd)
  return isDevelopment ? new BuiltInScanner() : null
}

/** Continues each step after the last one. Begins a new round after a step that returned no position. */
function inRounds<Position>(
  step: (after: Position | null) => Promise<Position | null>,
): () => Promise<boolean> {
  let after: Position | null = null
  return async () => {
    after = await step(after)
    return after !== null
  }
}

/** Deletes expired rows in small steps. */
function purgeLoops({ settings, db, clock, log, blobs }: Foundation, dueWork: DueWork): Loop[] {
  const purge = () => purgeDeleted({ db, blobs }, purgeBatch)
  const purgeOld = inRounds((after: SubmissionId | null) =>
    purgeContents({ db, clock, blobs }, sentContentMs(settings), purgeBatch, after),
  )
  const purgeStones = inRounds((after: Date | null) => purgeTombstones({ db, clock }, purgeBatch, after))
  const endUnused = () => endSearches({ db, clock }, purgeBatch)
  const purgePeople = () => purgeStale({ db, clock }, purgeBatch)
  return [
    ...retentionLoops({ settings, db, clock, log, blobs }),
    dueWork.createLoop(inboxPurgeDue, { name: 'purge', run: purge }),
    new Loop({ name: 'purge contents', run: purgeOld, intervalMs: retentionMs, log }),
    new Loop({ name: 'purge tombstones', run: purgeStones, intervalMs: retentionMs, log }),
    new Loop({ name: 'end searches', run: endUnused, intervalMs: 60_000, log }),
    new Loop({ name: 'purge stale', run: purgePeople, intervalMs: retentionMs, log }),
  ]
}

type Retaining = Pick<Foundation, 'settings' | 'db' | 'clock' | 'log' | 'blobs'>

/** Loops that enforce the operator's retention times. */
function retentionLoops({ settings, db, clock, log, blobs }: Retaining): Loop[] {
  const { submissions, messages, audit } = settings.retention
  const loops: Loop[] = []
  const add = (name: string, run: () => Promise<boolean>) =>
    void loops.push(new Loop({ name, run, intervalMs: retentionMs, log }))
  if (submissions !== null)
    add(
      'remove settled',
      inRounds((after: SubmissionId | null) =>
        removeSettled({ db, clock, blobs }, submissions, purgeBatch, after),
      ),
    )
  if (messages !== null) {
    const remover = new OldMessages({ db, clock, blobs }, messages)
    add('remove old messages', () => remover.removeNext(oldMessageBatch))
  }
  if (audit !== null) add('remove old audit entries', () => removeOldAudit({ db, clock }, audit, purgeBatch))
  return loops
}

/** Mail that is slow to read has a separate loop. The loop that finds such mail wakes it. */
function filingLoops(
  quick: FilingDeps & { slow: Set<OrganizationId> },
  slow: FilingDeps & { slow: Set<OrganizationId> },
  { filing }: Signals,
  dueWork: DueWork,
): Loop[] {
  const isSlow = new Signal()
  const file = async () => {
    const isMore = await fileSpooled(quick, filingBatch)
    if (quick.slow.size > 0) isSlow.wake()
    return isMore
  }
  const fileNext = () => fileSlow(slow, filingBatch)
  return [
    dueWork.createLoop(workDue.mail, { name: 'file', run: file, signal: filing, collectMs: filingPauseMs }),
    new Loop({ name: 'file slow mail', run: fileNext, signal: isSlow, log: quick.log }),
  ]
}

function reportLoops(
  { settings, db, clock, log, blobs, secretBox }: Foundation,
  { parsePool, claims, dueWork }: { parsePool: ParsePool; claims: Claims; dueWork: DueWork },
): Loop[] {
  const reporting = { db, clock, log, blobs, parsePool, secretBox, claims }
  const read = () => readReports(reporting, reportBatch)
  const dropOld = () => dropOldMail(reporting, settings.retention['operator-mail'], purgeBatch)
  return [
    dueWork.createLoop(workDue.report, { name: 'read reports', run: read }),
    new Loop({ name: 'drop old mail', run: dropOld, intervalMs: retentionMs, log }),
  ]
}

function domainLoops(
  { settings, db, clock, log, resolver }: Foundation,
  mtaStsMode: Certificate['mtaStsMode'],
  dueWork: DueWork,
): Loop[] {
  const { mailHost, managedDomain } = settings
  const checking = { db, clock, log, resolver: resolver.for('domain checks'), mailHost, mtaStsMode }
  const recheck = () => recheckDomains(checking, domainBatch)
  const switchKeys = () => switchManagedKeys(checking, managedDomain).then(() => false)
  return [
    dueWork.createLoop(recheckDue, { name: 'check domains', run: recheck }),
    dueWork.createLoop(managedKeysDue, { name: 'check own keys', run: switchKeys, collectMs: ownKeysMs }),
  ]
}

function scanLoops(scanner: Scanner, dueWork: DueWork, count: number): Loop[] {
  const scan = { name: 'scan', run: () => scanner.scanNext() }
  return Array.from({ length: count }, () => dueWork.createLoop(workDue.scan, scan))
}
