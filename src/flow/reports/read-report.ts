// Reads reports about what was sent: bounces at return paths, complaints at fbl@; each moves only what its token proves.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { Rotation } from '../../base/rotation.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { UnderWay } from '../../base/under-way.ts'
import type { DiskBlobs } from '../../blobs/disk.ts'
import type { Report } from '../../mail/bounce/report.ts'
import { type ParsePool, ParseTimedOut } from '../../mail/parse-pool.ts'
import { type ReturnPathToken, readReturnPath } from '../../mail/return-path.ts'
import { type Db, DbFault, type Tx, type Writer } from '../../postgres/db.ts'
import {
  claimReports,
  deleteKept,
  dropOldKept,
  type KeptReport,
  noteFailedReports,
  postponeReports,
} from '../../store/kept-mail.ts'
import type { RawRow } from '../../store/raws.ts'
import { keepClaims } from '../../store/work.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { mayPass, ownFaultWaitMs } from '../own-fault.ts'
import { applyReports, type ProvedReport } from './apply-report.ts'

interface ReportDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: DiskBlobs
  parsePool: Pick<ParsePool, 'report'>
  secretBox: SecretBox
  underWay: UnderWay
  /** Whose turn it is. */
  rotation?: Rotation
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

/** Operators' mail goes before its time where more than that many have come since. */
const maxKept = 1_000
/** Large ones go sooner, but not on their first day, so that there is room again for new ones: past 256 MiB none are taken. */
const keptBytes = 192 << 20
const heavyKeptMs = 86_400_000

/**
 * Reads up to `limit` reports; returns whether there is more to do at once. Advisory locks are the claim: other nodes pass
 * over them, a crash lets go of them, and until they are read nothing is written that others would wait for.
 */
export async function readReports(deps: ReportDeps, limit: number): Promise<boolean> {
  await noteLost(deps)
  try {
    return await readSome(deps, limit, () => {})
  } catch (error) {
    if (error instanceof DbFault && error.kind === 'lost') throw error
    deps.log.warn({ err: error }, 'a batch of reports could not be read; they are tried one by one')
    return await readOneByOne(deps, limit)
  }
}

/** Counts a failure of each report that was being read when this node ended: one of them may have ended it. */
async function noteLost(deps: ReportDeps): Promise<void> {
  const lost = deps.underWay.lost()
  if (lost.length === 0) return
  deps.log.warn({ kept: lost }, 'this node ended while it read reports; they are tried one by one')
  await noteFailure({ ...deps, db: deps.db.writer }, lost, 1)
  deps.underWay.end()
}

async function noteFailure(
  { db, clock }: { db: Writer; clock: Clock },
  ids: string[],
  failures: number,
): Promise<void> {
  const retryAt = new Date(clock.nowMs() + backoffMs(retryMs, failures))
  await noteFailedReports(db, ids, { retryAt, maxFailures })
}

/** A report that cannot be read waits, so that it never holds up the others, and is set aside in the end. */
async function readOneByOne(deps: ReportDeps, limit: number): Promise<boolean> {
  for (let count = 0; count < limit; count++) {
    let current: Kept | undefined
    try {
      const isMore = await readSome(deps, 1, ([claimed]) => (current = claimed))
      if (!isMore) return false
    } catch (error) {
      if (!current || (error instanceof DbFault && error.kind === 'lost')) throw error
      const failures = current.failures + ((await mayPass(error, deps.blobs)) ? 0 : 1)
      deps.log.error({ err: error, kept: current.id, failures }, 'a report could not be read')
      if (failures > current.failures)
        await noteFailure({ ...deps, db: deps.db.writer }, [current.id], failures)
      else await postponeReports(deps.db.writer, [current.id], new Date(deps.clock.nowMs() + ownFaultWaitMs))
    }
  }
  return true
}

async function readSome(
  deps: ReportDeps,
  limit: number,
  onClaimed: (kept: Kept[]) => void,
): Promise<boolean> {
  const { db, clock, blobs, rotation = new Rotation() } = deps
  const { more, unused } = await db.transaction(async (tx) => {
    const { taken, last, isMore } = await claimReports(tx, clock.now(), {
      limit,
      maxBytes,
      behind: rotation.last,
    })
    rotation.last = last
    onClaimed(taken)
    if (taken.length === 0) return { more: isMore, unused: [] }
    await keepClaims(tx)
    const { read, late } = await readAll(deps, taken)
    const unused = await settle(deps, tx, read)
    for (const { id, failures } of late) await noteFailure({ ...deps, db: tx }, [id], failures + 1)
    return { more: isMore || read.length < taken.length, unused }
  })
  await deleteBlobs({ db, blobs }, unused)
  return more
}

interface ReadReport {
  kept: Kept
  report: Report | null
}

interface Batch {
  read: ReadReport[]
  /** What took too long, the first of each organization alone. */
  late: Kept[]
}

async function readAll(deps: ReportDeps, taken: Kept[]): Promise<Batch> {
  deps.underWay.begin(taken.map(({ id }) => id))
  try {
    return await readInTime(deps, taken)
  } finally {
    deps.underWay.end()
  }
}

/** Reads as many as there is time for; the others stay for the next batch. */
async function readInTime({ blobs, parsePool }: ReportDeps, taken: Kept[]): Promise<Batch> {
  const batch: Batch = { read: [], late: [] }
  const slow = new Set<OrganizationId | null>()
  const rows = taken.values()
  const untilMs = performance.now() + readingMs
  const readNext = async () => {
    for (const kept of rows) {
      const isWanted = () => !slow.has(kept.organizationId)
      if (!isWanted()) continue
      const raw = kept.bytes ?? { path: blobs.pathOf(kept.blob!), sizeBytes: kept.sizeBytes }
      const timeoutMs = timeLimitMs * (kept.failures + 1)
      try {
        batch.read.push({ kept, report: await parsePool.report(raw, kept.purpose, { timeoutMs, isWanted }) })
      } catch (error) {
        if (!(error instanceof ParseTimedOut)) throw error
        if (isWanted()) batch.late.push(kept)
        slow.add(kept.organizationId)
      }
      if (performance.now() > untilMs) return
    }
  }
  await Promise.all(Array.from({ length: readAtOnce }, readNext))
  return batch
}

/** Applies what is proved, in one commit with the end of the mails that said it; returns the blobs that go. */
async function settle({ clock, log, secretBox }: ReportDeps, tx: Tx, read: ReadReport[]): Promise<string[]> {
  const proved = read.flatMap(({ kept, report }): ProvedReport[] => {
    const token = report && proofOf(secretBox, kept, report)
    if (token) return [{ id: kept.id, token, report, receivedAt: kept.receivedAt }]
    log.info({ kept: kept.id, purpose: kept.purpose }, 'a mail to a report address is no report of ours')
    return []
  })
  const { waiting } = await applyReports(tx, proved, clock.now())
  await postponeReports(tx, waiting, new Date(clock.nowMs() + onWireRetryMs))
  const done = read.map(({ kept }) => kept.id).filter((id) => !waiting.includes(id))
  return await deleteKept(tx, done)
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
