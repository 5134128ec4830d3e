// Reads reports about sent mail: bounces at return paths, complaints at fbl@. Each affects only the delivery in its token.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Report } from '../../mail/bounce/report.ts'
import { type ParsePool, ParseTimedOut } from '../../mail/parse-pool.ts'
import { type ReturnPathToken, readReturnPath } from '../../mail/return-path.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import { readUntorn } from '../../postgres/read-untorn.ts'
import {
  deleteKept,
  dropOldKept,
  type KeptReport,
  lockReports,
  readKept,
  setAsideReports,
} from '../../store/mailbox/kept-mail.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import { type Claim, type ClaimedWork, putBackWork } from '../../store/work.ts'
import { type Claims, putOffTorn } from '../claims.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { failAsFault, mayPass, ownFaultWaitMs } from '../own-fault.ts'
import { withMailBytes } from '../stored-bytes.ts'
import { applyReports, type ProvedReport } from './apply-report.ts'

interface ReportDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
  parsePool: Pick<ParsePool, 'report'>
  secretBox: SecretBox
  claims: Claims
}

type Kept = KeptReport & RawRow

/** After this many failures a report is moved to the operators' mail. */
const maxFailures = 5
const retryMs = [1_000, 5_000, 30_000, 60_000]
/** If the delivery is still on the wire, its report waits this long: it can arrive before the result is recorded. */
const onWireRetryMs = 2_000
const maxBytes = 16 << 20
const readAtOnce = 8
const readingMs = 1_000
/** A report that takes longer has failed. The next attempt has twice as long, the one after that three times. */
const timeLimitMs = 1_000

/** How many read mails and unreadable reports to keep for operators. The oldest are deleted first. */
const maxKept = 1_000
/** The bytes to keep of such mail. Beyond them, mail older than a day is deleted. */
const keptBytes = 192 << 20
const heavyKeptMs = 86_400_000

/**
 * Reads up to `limit` reports. Returns whether more is due now. Claims reports in one commit and reads them outside any
 * transaction. Another commit applies the reports that the claim still holds.
 */
export async function readReports(deps: ReportDeps, limit: number): Promise<boolean> {
  return await deps.claims.each({ limit, maxBytes }, (claimed, undone) => readClaimed(deps, claimed, undone))
}

/** Reads and applies claimed reports. Removes from `undone` the reports that were applied or postponed. */
async function readClaimed(
  deps: ReportDeps,
  { claim, ids }: ClaimedWork,
  undone: Set<string>,
): Promise<void> {
  const { rows: taken, torn } = await readUntorn(ids, (some) => readKept(deps.db, some))
  const { read, failed } = await readInTime(deps, taken)
  const results = await commitRows(read, (rows) => settle(deps, claim, rows).catch(failAsFault))
  for (const [i, { kept }] of read.entries()) {
    const result = results[i]
    if (result instanceof DbFault) failed.set(kept, result)
    else undone.delete(kept.id)
  }
  for (const [kept, error] of failed) {
    await putOff(deps, claim, kept, error)
    undone.delete(kept.id)
  }
  await putOffTorn(deps, claim, torn, undone)
}

/** Postpones a report that cannot be read, so that it blocks no others. At `maxFailures` it becomes operators' mail. */
async function putOff(deps: ReportDeps, claim: Claim, kept: Kept, error: unknown): Promise<void> {
  const { db, clock, log, blobs } = deps
  const counted = (await mayPass(error, blobs)) ? 0 : 1
  const failures = kept.failures + counted
  log.error({ err: error, kept: kept.id, failures }, 'report could not be read')
  if (failures >= maxFailures) return await setAsideReports(db.writer, claim, [kept.id], failures)
  const waitMs = counted === 0 ? ownFaultWaitMs : backoffMs(retryMs, failures)
  const dueAt = new Date(clock.nowMs() + waitMs)
  await putBackWork(db.writer, claim, [kept.id], { dueAt, failures: counted })
}

interface ReadReport {
  kept: Kept
  report: Report | null
}

/** The outcome of a batch. Reports that were not reached in time are in neither list. */
interface Reading {
  read: ReadReport[]
  /** The errors of failed reports. If several reports of an organization exceed the time limit, only the first has failed. */
  failed: Map<Kept, unknown>
}

/** Reads as many reports as time allows. The others stay for the next batch. */
async function readInTime({ blobs, parsePool }: ReportDeps, taken: Kept[]): Promise<Reading> {
  const reading: Reading = { read: [], failed: new Map() }
  const slow = new Set<OrganizationId | null>()
  const rows = taken.values()
  const untilMs = performance.now() + readingMs
  const readNext = async () => {
    for (const kept of rows) {
      const isWanted = () => !slow.has(kept.organizationId)
      if (!isWanted()) continue
      const timeoutMs = timeLimitMs * (kept.failures + 1)
      try {
        // The last claim was lost, which counts as a failure. The node may have died of this report.
        if (kept.failures >= maxFailures) throw new Error('it was lost each time that it was read')
        const report = await withMailBytes(blobs, kept, (raw) =>
          parsePool.report(raw, kept.purpose, { timeoutMs, isWanted }),
        )
        reading.read.push({ kept, report })
      } catch (error) {
        const isLate = error instanceof ParseTimedOut
        if (!isLate || isWanted()) reading.failed.set(kept, error)
        if (isLate) slow.add(kept.organizationId)
      }
      if (performance.now() > untilMs) return
    }
  }
  await Promise.all(Array.from({ length: readAtOnce }, readNext))
  return reading
}

/** Applies the proved reports that the claim still holds, and deletes their mails in the same commit. */
async function settle(deps: ReportDeps, claim: Claim, read: ReadReport[]): Promise<'done'[]> {
  const { db, clock, blobs } = deps
  if (read.length === 0) return []
  const unused = await db.transaction(async (tx) => {
    const ids = await lockReports(
      tx,
      claim,
      read.map(({ kept }) => kept.id),
    )
    const own = read.filter(({ kept }) => ids.has(kept.id))
    const { waiting } = await applyReports(tx, proofsIn(deps, own), clock.now())
    await putBackWork(tx, claim, waiting, { dueAt: new Date(clock.nowMs() + onWireRetryMs) })
    return await deleteKept(
      tx,
      [...ids].filter((id) => !waiting.includes(id)),
    )
  })
  await deleteBlobs({ db, blobs }, unused)
  return read.map(() => 'done')
}

function proofsIn({ log, secretBox }: ReportDeps, read: ReadReport[]): ProvedReport[] {
  return read.flatMap(({ kept, report }) => {
    const token = report && proofOf(secretBox, kept, report)
    if (token) return [{ id: kept.id, token, report, receivedAt: kept.receivedAt }]
    log.info({ kept: kept.id, purpose: kept.purpose }, 'mail to a report address is not a report on our mail')
    return []
  })
}

/**
 * Returns the token that proves which delivery the report is about, or null if it has no valid token. A bounce was sent to a
 * return path, which holds the token. A complaint quotes a return path, which the complainer can only have from our mail.
 */
function proofOf(secretBox: SecretBox, kept: Kept, report: Report): ReturnPathToken | null {
  const own = kept.purpose === 'return_path' ? [kept.address] : []
  const named = report.kind === 'feedback' ? report.returnPaths : []
  for (const address of [...own, ...named]) {
    const at = address.lastIndexOf('@')
    const localPart = address.slice(0, at).toLowerCase().replace(/\+.*$/s, '')
    const token = readReturnPath(secretBox, localPart, address.slice(at + 1).toLowerCase(), kept.receivedAt)
    if (token) return token
  }
  return null
}

/** Deletes a chunk of operators' mail that was kept long enough. Returns whether there may be more. */
export async function dropOldMail(
  { db, clock, blobs }: Pick<ReportDeps, 'db' | 'clock' | 'blobs'>,
  keptMs: number,
  limit: number,
): Promise<boolean> {
  const before = new Date(clock.nowMs() - keptMs)
  const heavyBefore = new Date(clock.nowMs() - heavyKeptMs)
  const keeping = { before, keep: maxKept, heavyBefore, keepBytes: keptBytes }
  const gone = await db.transaction((tx) => dropOldKept(tx, keeping, limit))
  await deleteBlobs({ db, blobs }, gone.blobs)
  return gone.dropped === limit
}
