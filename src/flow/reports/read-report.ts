// Reads reports about what was sent: bounces at return paths, complaints at fbl@; each moves only what its token proves.
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
import type { Claims } from '../claims.ts'
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

/** After so many failures a report is set aside, where operators' mail is. */
const maxFailures = 5
const retryMs = [1_000, 5_000, 30_000, 60_000]
/** A report about mail that is on the wire waits until that has ended: it can come before the result is recorded. */
const onWireRetryMs = 2_000
const maxBytes = 16 << 20
const readAtOnce = 8
const readingMs = 1_000
/** What takes longer has failed, and has twice as long the next time, three times as long after that. */
const timeLimitMs = 1_000

/** Operators' mail that was read goes before its time once more than that many of such have come since. */
const maxKept = 1_000
/** Of what was read and is older than a day, no more bytes stay than that. */
const keptBytes = 192 << 20
const heavyKeptMs = 86_400_000

/**
 * Reads up to `limit` reports; returns whether there is more to do at once. They are claimed in a commit of its own, read
 * outside any transaction, and applied in one that asks whether they are still the claim's.
 */
export async function readReports(deps: ReportDeps, limit: number): Promise<boolean> {
  return await deps.claims.each({ limit, maxBytes }, (claimed, undone) => readClaimed(deps, claimed, undone))
}

/** Takes out of `undone` what was read, or put off. */
async function readClaimed(
  deps: ReportDeps,
  { claim, ids }: ClaimedWork,
  undone: Set<string>,
): Promise<void> {
  const { read, failed } = await readInTime(deps, await readKept(deps.db, ids))
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
}

/** A report that cannot be read waits, so that it never holds up the others, and is set aside in the end. */
async function putOff(deps: ReportDeps, claim: Claim, kept: Kept, error: unknown): Promise<void> {
  const { db, clock, log, blobs } = deps
  const counted = (await mayPass(error, blobs)) ? 0 : 1
  const failures = kept.failures + counted
  log.error({ err: error, kept: kept.id, failures }, 'a report could not be read')
  if (failures >= maxFailures) return await setAsideReports(db.writer, claim, [kept.id], failures)
  const waitMs = counted === 0 ? ownFaultWaitMs : backoffMs(retryMs, failures)
  const dueAt = new Date(clock.nowMs() + waitMs)
  await putBackWork(db.writer, claim, [kept.id], { dueAt, failures: counted })
}

interface ReadReport {
  kept: Kept
  report: Report | null
}

/** What became of reports that were to be read; of some nothing, for there was no time. */
interface Reading {
  read: ReadReport[]
  /** What took too long is among them, the first of each organization alone. */
  failed: Map<Kept, unknown>
}

/** Reads as many as there is time for; the others stay for the next batch. */
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
        // The nodes that read it have ended over it.
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

/** Applies what is proved, in one commit with the end of the mails that said it: of those that are still the claim's. */
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
    log.info({ kept: kept.id, purpose: kept.purpose }, 'a mail to a report address is no report of ours')
    return []
  })
}

/**
 * The token that proves which submission is meant: that of the return path which the report came to, or for a complaint
 * one that stands in it, since whoever complains has our return path from us alone. A forged one proves nothing.
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

/** Deletes a chunk of what has been kept for operators long enough; returns whether there may be more. */
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
