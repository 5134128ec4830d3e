// Scans attachments with clamd, one message at a time. Commits a message's verdicts and their events together.
import { createHash } from 'node:crypto'
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { attachmentIdOf, newUuid, type OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { divided } from '../../base/share.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { decodeStream } from '../../mail/read/transfer-stream.ts'
import { type Db, DbFault, type Tx } from '../../postgres/db.ts'
import { ArchiveSearch } from '../../scan/archive.ts'
import type { AttachmentScanner } from '../../scan/built-in.ts'
import type { ScanVerdict } from '../../scan/clamd.ts'
import { announce } from '../../store/events/outbox.ts'
import type { AttachmentEntry } from '../../store/mailbox/messages.ts'
import { findRaw, type RawRow } from '../../store/mailbox/raws.ts'
import { endScans, findScan, type ScanJob, storeVerdicts } from '../../store/mailbox/scans.ts'
import { type Claim, putBackWork } from '../../store/work.ts'
import type { Claims } from '../claims.ts'
import { scanMoves } from '../states.ts'
import { openRaw } from '../stored-bytes.ts'

export interface ScanDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
  clamd: AttachmentScanner
  /** The processes that scan, which divide an organization's part. */
  workers?: number
  claims: Claims
}

type Span = NonNullable<AttachmentEntry['span']>

/** The result of a run: message done, more to scan, trouble with the message, or clamd out of reach. */
type Outcome = 'done' | 'more' | 'trouble' | 'outage'

const retryMs = [60_000, 5 * 60_000, 15 * 60_000, 3_600_000, 6 * 3_600_000]
const outageMs = [1_000, 2_000, 5_000, 10_000]
/** No further attachment of a message is begun after this time. The rest waits for the next run. */
const messageMs = 120_000
/** How many messages of one organization are scanned at once. */
const maxOfOrganization = 2

/** The message is gone, or another worker has claimed it: nothing is recorded. */
class ClaimLost extends Error {}

/** Scans messages, one for each worker that calls `scanNext`. The workers share what they know about clamd. */
export class Scanner {
  readonly #deps: ScanDeps
  #outages = 0
  #quietUntilMs = 0
  #isClosed = false
  /** How many messages of each organization are being scanned. */
  readonly #scanning = new Map<OrganizationId, number>()

  constructor(deps: ScanDeps) {
    this.#deps = deps
  }

  /**
   * Scans the oldest waiting message of the next organization in round robin. Returns whether to go on at once. While clamd
   * is out of reach, it retries every few seconds and writes nothing.
   */
  async scanNext(): Promise<boolean> {
    const { clock, claims } = this.#deps
    if (this.#isClosed || clock.monotonicMs() < this.#quietUntilMs) return false
    if (this.#outages > 0 && !(await this.#isBack())) return false
    const wanted = { limit: 1, maxBytes: 0, passedOver: this.#occupying() }
    return await claims.each(wanted, async ({ claim, ids: [id] }, undone) => {
      if (await this.#scanClaimed(claim, id!)) undone.delete(id!)
    })
  }

  /** Returns whether the result was recorded. */
  async #scanClaimed(claim: Claim, id: string): Promise<boolean> {
    const { db } = this.#deps
    const job = await findScan(db, id)
    if (!job || job.isDeleted) {
      await endScans(db.writer, claim, [id])
      return true
    }
    this.#count(job.organizationId, 1)
    return await this.#scan(claim, job).finally(() => this.#count(job.organizationId, -1))
  }

  async #isBack(): Promise<boolean> {
    if (await this.#deps.clamd.isAlive()) return true
    this.#noteOutage('it does not answer')
    return false
  }

  #count(id: OrganizationId, change: 1 | -1): void {
    const count = (this.#scanning.get(id) ?? 0) + change
    if (count > 0) this.#scanning.set(id, count)
    else this.#scanning.delete(id)
  }

  /** The organizations that are at their limit of messages being scanned. */
  #occupying(): OrganizationId[] {
    const max = divided(maxOfOrganization, this.#deps.workers ?? 1)
    return [...this.#scanning].flatMap(([id, count]) => (count >= max ? id : []))
  }

  /** Aborts running scans. They are repeated later. */
  close(): void {
    this.#isClosed = true
    this.#deps.clamd.close()
  }

  async #scan(claim: Claim, job: ScanJob): Promise<boolean> {
    const { db, clock } = this.#deps
    const attachments = structuredClone(job.attachments)
    const outcome = await this.#scanAll(job, attachments)
    if (this.#isClosed) return false
    const at = clock.now()
    const recorded = db.transaction(async (tx) => {
      // Locks the message before its row in `scan`, in the same order as a deletion.
      await publishVerdicts(tx, job, attachments, at)
      const ended = await this.#end(tx, claim, job, outcome, at)
      if (ended.length === 0) throw new ClaimLost()
    })
    await recorded.catch((error) => {
      if (!(error instanceof ClaimLost)) throw error
    })
    return true
  }

  /** Returns the message's id if the claim still held it. */
  async #end(
    tx: Tx,
    claim: Claim,
    { messageId, failures }: ScanJob,
    outcome: Outcome,
    at: Date,
  ): Promise<string[]> {
    if (outcome === 'done') return await endScans(tx, claim, [messageId])
    if (outcome !== 'trouble') return await putBackWork(tx, claim, [messageId])
    const dueAt = new Date(at.getTime() + backoffMs(retryMs, failures + 1))
    return await putBackWork(tx, claim, [messageId], { dueAt, failures: 1 })
  }

  /** Writes the verdicts into `attachments`. */
  async #scanAll(job: ScanJob, attachments: AttachmentEntry[]): Promise<Outcome> {
    const { log } = this.#deps
    try {
      return await this.#scanInTime(job, attachments)
    } catch (error) {
      if (error instanceof DbFault) throw error
      if (!this.#isClosed) log.error({ err: error, message: job.messageId }, 'attachments could not be read')
      return 'trouble'
    }
  }

  async #scanInTime(job: ScanJob, attachments: AttachmentEntry[]): Promise<Outcome> {
    const raw = job.rawId ? await findRaw(this.#deps.db, job.rawId) : null
    if (!raw) throw new Error('their bytes are not there')
    const spans = job.isComposed ? spansOf(attachments) : attachments.map(({ span }) => span)
    const untilMs = performance.now() + messageMs
    let outcome: Outcome = 'done'
    for (const [index, entry] of attachments.entries()) {
      if (scanMoves[entry.scanState].length === 0) continue
      if (performance.now() > untilMs) return outcome === 'done' ? 'more' : outcome
      const span = spans[index]
      if (!span) throw new Error('where they stand is not known')
      const verdict = await this.#scanOne(raw, span, entry.sha256)
      if (verdict.state === 'unreachable' || this.#isClosed) return 'outage'
      if (verdict.state === 'later' || verdict.state === 'lost') outcome = 'trouble'
      else Object.assign(entry, { scanState: verdict.state, span })
      if (verdict.state !== 'clean') this.#logFinding(job, index, verdict)
      // The attachment may have crashed clamd. So its message backs off, and is not the first to be scanned when clamd is
      // back.
      if (verdict.state === 'lost') break
    }
    return outcome
  }

  #logFinding({ messageId }: ScanJob, index: number, { state, detail }: ScanVerdict): void {
    this.#deps.log.warn(
      { message: messageId, attachment: index + 1, state, detail },
      'attachment is not clean',
    )
  }

  /** Throws if the bytes cannot be read, or if clamd passed bytes that differ from the filed ones. */
  async #scanOne(raw: RawRow, span: Span, sha256: string): Promise<ScanVerdict> {
    const { blobs, clamd } = this.#deps
    let reading = new Reading(blobs, raw, span)
    const verdict = await clamd.scan(() => {
      reading = new Reading(blobs, raw, span)
      return reading.pieces()
    })
    if (verdict.state === 'unreachable' || verdict.state === 'lost') this.#noteOutage(verdict.detail)
    else this.#noteAnswer()
    if (verdict.state !== 'clean') return verdict
    if (reading.sha256() !== sha256) throw new Error('the attachments are not those that were filed')
    const passedOver = reading.archives.findUnscannable()
    return passedOver === null ? verdict : { state: 'failed', detail: passedOver }
  }

  #noteOutage(reason: string): void {
    const { clock, log } = this.#deps
    // Another worker has noticed the outage already.
    if (this.#isClosed || clock.monotonicMs() < this.#quietUntilMs) return
    if (this.#outages++ === 0) log.warn({ reason }, 'clamd is unreachable: attachments wait unscanned')
    this.#quietUntilMs = clock.monotonicMs() + backoffMs(outageMs, this.#outages)
  }

  #noteAnswer(): void {
    if (this.#outages > 0) this.#deps.log.info('clamd answers again')
    this.#outages = 0
    this.#quietUntilMs = 0
  }
}

/** Reads one attachment, decoded. Collects its digest and the archives in it. */
class Reading {
  readonly archives = new ArchiveSearch()
  readonly #hash = createHash('sha256')
  readonly #blobs: Blobs
  readonly #raw: RawRow
  readonly #span: Span

  constructor(blobs: Blobs, raw: RawRow, span: Span) {
    this.#blobs = blobs
    this.#raw = raw
    this.#span = span
  }

  async *pieces(): AsyncGenerator<Buffer> {
    const stored = await openRaw(this.#blobs, this.#raw, this.#span)
    if (!stored) throw new Error(`the blob ${this.#raw.blob} is not in the store`)
    for await (const piece of decodeStream(stored, this.#span.encoding)) {
      this.#hash.update(piece)
      this.archives.add(piece)
      yield piece
    }
  }

  /** The digest of all bytes. May be called once. */
  sha256(): string {
    return this.#hash.digest('hex')
  }
}

/** The raw row of a composed message holds its attachments one after the other. */
function spansOf(attachments: AttachmentEntry[]): Span[] {
  let start = 0
  return attachments.map(({ size }) => {
    const span = { start, length: size, encoding: 'none' as const }
    start += size
    return span
  })
}

async function publishVerdicts(
  tx: Tx,
  job: ScanJob,
  attachments: AttachmentEntry[],
  at: Date,
): Promise<void> {
  const isNew = (index: number) => attachments[index]!.scanState !== job.attachments[index]!.scanState
  const scanned = [...attachments.keys()].filter(isNew)
  if (scanned.length === 0 || !(await storeVerdicts(tx, job.messageId, attachments, at))) return
  const items = scanned.map((index) => ({
    id: newUuid(),
    type: 'attachment.scanned' as const,
    message: job.messageId,
    attachment: attachmentIdOf(job.messageId, index),
  }))
  await announce(tx, { organizationId: job.organizationId, at, items })
}
