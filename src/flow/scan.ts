// Has clamd look at attachments: a message at a time, its verdicts and what is told of them in one commit.
import { buffer as readBuffer } from 'node:stream/consumers'
import { backoffMs } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import { type MessageId, newUuid } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { UnderWay } from '../base/under-way.ts'
import type { DiskBlobs } from '../blobs/disk.ts'
import type { ParsePool } from '../mail/parse-pool.ts'
import { findUnscannable } from '../scan/archive.ts'
import type { Clamd, ScanVerdict } from '../scan/clamd.ts'
import { type Db, DbFault, type Tx } from '../store/db.ts'
import type { AttachmentEntry } from '../store/messages.ts'
import { announce } from '../store/outbox.ts'
import { findRaw } from '../store/raws.ts'
import { claimScan, endScan, isScanDue, postponeScan, type ScanJob, storeVerdicts } from '../store/scans.ts'
import { scanMoves } from './states.ts'

export interface ScanDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: DiskBlobs
  parsePool: ParsePool
  clamd: Clamd
  underWay: UnderWay
}

type StoredContent = { bytes: Buffer; place: NonNullable<AttachmentEntry['place']> }

/** How a run ended: nothing left of the message, more of it to scan, trouble with it, or with clamd alone. */
type Outcome = 'done' | 'more' | 'trouble' | 'outage'

const retryMs = [60_000, 5 * 60_000, 15 * 60_000, 3_600_000, 6 * 3_600_000]
const outageMs = [1_000, 2_000, 5_000, 10_000]
/** No further attachment of a message is begun past this; what is left goes in the next run. */
const messageMs = 120_000

/** Scans by as many lines as call `scanNext`; what they learn of clamd they share. */
export class Scanner {
  readonly #deps: ScanDeps
  #outages = 0
  #quietUntilMs = 0
  #isClosed = false
  readonly #beingRead = new Set<string>()
  #lostNoted: Promise<void> | null = null

  constructor(deps: ScanDeps) {
    this.#deps = deps
  }

  /**
   * Scans the message that has waited longest; answers whether to go on at once. While clamd is out of reach it asks
   * again every few seconds and writes nothing.
   */
  async scanNext(): Promise<boolean> {
    const { db, clock } = this.#deps
    if (this.#isClosed || clock.monotonicMs() < this.#quietUntilMs) return false
    await this.#noteLost()
    if (!(await isScanDue(db, clock.now()))) return false
    return await db.transaction(async (tx) => {
      const job = await claimScan(tx, clock.now())
      if (!job) return false
      if (job.isDeleted) {
        await endScan(tx, job.messageId)
        return true
      }
      return await this.#scan(tx, job)
    })
  }

  /** Ends what is under way; it is scanned another time. */
  close(): void {
    this.#isClosed = true
    this.#deps.clamd.close()
  }

  /** What was being read when this node ended may have ended it: it waits, once for all lines. */
  async #noteLost(): Promise<void> {
    const { db, clock, log, underWay } = this.#deps
    const postpone = async () => {
      const lost = underWay.lost()
      if (lost.length === 0) return
      log.warn({ messages: lost }, 'this node ended while it read attachments; they are tried again later')
      const dueAt = new Date(clock.nowMs() + backoffMs(retryMs, 1))
      await db.transaction(async (tx) => {
        for (const id of lost) await postponeScan(tx, id as MessageId, dueAt)
      })
      underWay.end()
    }
    this.#lostNoted ??= postpone()
    try {
      await this.#lostNoted
    } catch (error) {
      this.#lostNoted = null
      throw error
    }
  }

  async #scan(tx: Tx, job: ScanJob): Promise<boolean> {
    const { clock } = this.#deps
    const attachments = structuredClone(job.attachments)
    const outcome = await this.#judgeAll(tx, job, attachments)
    if (this.#isClosed) return false
    const at = clock.now()
    await tellVerdicts(tx, job, attachments, at)
    if (outcome === 'done') await endScan(tx, job.messageId)
    if (outcome === 'trouble') {
      const waitMs = backoffMs(retryMs, job.failures + 1)
      await postponeScan(tx, job.messageId, new Date(at.getTime() + waitMs))
    }
    return outcome !== 'outage'
  }

  /** Puts into `attachments` what is found out about each. */
  async #judgeAll(tx: Tx, job: ScanJob, attachments: AttachmentEntry[]): Promise<Outcome> {
    const { log } = this.#deps
    const contents = await this.#readContents(tx, job).catch((error) => {
      if (error instanceof DbFault) throw error
      if (!this.#isClosed) log.error({ err: error, message: job.messageId }, 'attachments could not be read')
      return null
    })
    if (!contents) return 'trouble'
    const untilMs = performance.now() + messageMs
    let outcome: Outcome = 'done'
    for (const [index, entry] of attachments.entries()) {
      if (scanMoves[entry.scanState].length === 0) continue
      if (performance.now() > untilMs) return outcome === 'done' ? 'more' : outcome
      const { bytes, place } = contents[index]!
      const verdict = await this.#judge(bytes)
      if (verdict.state === 'unreachable' || this.#isClosed) return 'outage'
      if (verdict.state === 'later' || verdict.state === 'lost') outcome = 'trouble'
      else Object.assign(entry, { scanState: verdict.state, place })
      if (verdict.state !== 'clean') {
        const { state, detail } = verdict
        log.warn(
          { message: job.messageId, attachment: index + 1, state, detail },
          'an attachment is not clean',
        )
      }
      // It waits like other trouble: what ends clamd each time must not be what is tried first each time.
      if (verdict.state === 'lost') break
    }
    return outcome
  }

  async #judge(bytes: Buffer): Promise<ScanVerdict> {
    const verdict = await this.#deps.clamd.scan(bytes)
    if (verdict.state === 'unreachable' || verdict.state === 'lost') this.#noteOutage(verdict.detail)
    else this.#noteAnswer()
    const passedOver = verdict.state === 'clean' ? findUnscannable(bytes) : null
    return passedOver === null ? verdict : { state: 'failed', detail: passedOver }
  }

  /** The bytes of each attachment, and where they stand; throws where they are not those that were filed. */
  async #readContents(tx: Tx, job: ScanJob): Promise<StoredContent[]> {
    const { blobs, parsePool } = this.#deps
    const raw = job.rawId ? await findRaw(tx, job.rawId) : null
    if (!raw) throw new Error('their bytes are not there')
    const bytes = raw.bytes ?? (await readBuffer(blobs.read(raw.blob!)))
    if (job.direction === 'outbound') return cutContents(bytes, job.attachments)
    const contents = await this.#noting(job.messageId, () => parsePool.attachmentContents(bytes))
    const isSame = job.attachments.every(({ sha256 }, index) => contents[index]?.sha256 === sha256)
    if (!isSame) throw new Error('the attachments are not those that were filed')
    return contents
  }

  /** Notes what is read while it is, by each line. */
  async #noting<Read>(messageId: MessageId, read: () => Promise<Read>): Promise<Read> {
    const { underWay } = this.#deps
    this.#beingRead.add(messageId)
    underWay.begin([...this.#beingRead])
    try {
      return await read()
    } finally {
      this.#beingRead.delete(messageId)
      underWay.begin([...this.#beingRead])
    }
  }

  #noteOutage(reason: string): void {
    const { clock, log } = this.#deps
    // Another line has met it as well.
    if (this.#isClosed || clock.monotonicMs() < this.#quietUntilMs) return
    if (this.#outages++ === 0) log.warn({ reason }, 'clamd cannot be reached: attachments wait until it can')
    this.#quietUntilMs = clock.monotonicMs() + backoffMs(outageMs, this.#outages)
  }

  #noteAnswer(): void {
    if (this.#outages > 0) this.#deps.log.info('clamd answers again')
    this.#outages = 0
    this.#quietUntilMs = 0
  }
}

/** Outbound attachments stand one after the other in the message's raw row. */
function cutContents(bytes: Buffer, attachments: AttachmentEntry[]): StoredContent[] {
  let start = 0
  return attachments.map(({ size }) => {
    const place = { start, length: size, encoding: 'none' as const }
    start += size
    return { bytes: bytes.subarray(place.start, start), place }
  })
}

async function tellVerdicts(tx: Tx, job: ScanJob, attachments: AttachmentEntry[], at: Date): Promise<void> {
  const isNew = (index: number) => attachments[index]!.scanState !== job.attachments[index]!.scanState
  const judged = [...attachments.keys()].filter(isNew)
  if (judged.length === 0 || !(await storeVerdicts(tx, job.messageId, attachments, at))) return
  const items = judged.map((index) => ({
    id: newUuid(),
    type: 'attachment.scanned' as const,
    message: job.messageId,
    attachment: `att_${job.messageId.slice(4)}_${index + 1}`,
  }))
  await announce(tx, { organizationId: job.organizationId, at, items })
}
