// Files received mail: parses it, finds its thread, stores the message and deletes the spool row in the same commit.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import { meters } from '../../base/meters.ts'
import { releaseBytes } from '../../postgres/columns.ts'
import { commitRows } from '../../postgres/commit.ts'
import type { Db } from '../../postgres/db.ts'
import { type FiledMessage, fileMessages } from '../../store/mailbox/messages.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import type { SpooledMail } from '../../store/mailbox/spool.ts'
import { type Claim, putBackWork } from '../../store/work.ts'
import { type Claims, putOffTorn } from '../claims.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { failAsFault, mayPass, ownFaultWaitMs } from '../own-fault.ts'
import { type BatchDeps, type ReadBatch, readBatch } from './read-batch.ts'

export interface FilingDeps extends BatchDeps {
  db: Db
  clock: Clock
  claims: Claims
  /**
   * Organizations whose mail is slow to read, for `fileSlow`. Absent if no worker calls it: reading then has no time limit.
   */
  slow?: Set<OrganizationId>
  /** Called with the new messages after the commit. */
  onFiled?(messages: readonly FiledMessage[]): void
}

const retryMs = [1_000, 5_000, 30_000, 60_000]
/** The most bytes of mail that one batch reads, because the amount of mail that arrives has no limit. */
const maxBytes = 16 << 20
/** How many mails the parser reads at once. */
const readAtOnce = 8
/**
 * A mail that takes longer goes to the worker for slow mail, with all later mail of its organization. So no batch waits for
 * its slowest mail. A legitimate mail of 5 MB takes a fifth of this.
 */
const timeLimitMs = 500

/**
 * Files up to `limit` spooled mails. Returns whether more is due now. Claims them in one commit, reads them outside any
 * transaction, and files in another commit what the claim still holds. Gives back unfinished mail.
 */
export async function fileSpooled(deps: FilingDeps, limit: number): Promise<boolean> {
  const { claims, slow } = deps
  const pace = { atOnce: readAtOnce, timeLimitMs: slow ? timeLimitMs : null }
  return await claims.each({ limit, maxBytes, passedOver: [...(slow ?? [])] }, async (claimed, undone) => {
    const batch = await readBatch(deps, claimed.ids, pace)
    for (const organization of batch.late) slow?.add(organization)
    await fileBatch(deps, claimed.claim, batch, undone)
  })
}

/**
 * Files mail of the next organization whose mail is slow to read. Returns whether to go on at once. To keep the order, it
 * stops at the first mail that another worker has claimed.
 */
export async function fileSlow(
  deps: FilingDeps & { slow: Set<OrganizationId> },
  limit: number,
): Promise<boolean> {
  const { claims, slow } = deps
  const [only] = slow
  if (only === undefined) return false
  let filed = 0
  const isMore = await claims.each({ limit, maxBytes, only }, async ({ claim, ids }, undone) => {
    const batch = await readBatch(deps, ids, { atOnce: 1, timeLimitMs: null })
    filed = await fileBatch(deps, claim, batch, undone)
  })
  slow.delete(only)
  if (isMore) slow.add(only)
  return filed > 0
}

/** Removes filed and postponed mails from `undone`. Returns how many mails were filed. */
async function fileBatch(
  deps: FilingDeps,
  claim: Claim,
  { read, failed, torn }: ReadBatch,
  undone: Set<string>,
): Promise<number> {
  const messages = read.map(({ message }) => message)
  const results = await commitRows(messages, (rows) => commit(deps, claim, rows).catch(failAsFault))
  const refused = read.flatMap(({ mail }, i) => (results[i] === 'done' ? [] : { mail, error: results[i] }))
  for (const [i, { mail }] of read.entries()) if (results[i] === 'done') undone.delete(mail.id)
  for (const { mail, error } of [...failed, ...refused]) {
    await putOff(deps, claim, mail, error)
    undone.delete(mail.id)
  }
  await putOffTorn(deps, claim, torn, undone)
  return read.length - refused.length
}

/** Files the mails that the claim still holds. Drops mail for an inbox that was deleted meanwhile. */
async function commit(deps: FilingDeps, claim: Claim, rows: FiledMessage[]): Promise<'done'[]> {
  const { db, clock, log, blobs } = deps
  if (rows.length === 0) return []
  const { messages, unused } = await db.transaction(async (tx) => {
    const kept = new Set(await fileMessages(tx, claim, rows, clock.now()))
    const dropped = rows.filter(({ id }) => !kept.has(id)).map(({ rawId }) => rawId)
    return {
      messages: rows.filter(({ id }) => kept.has(id)),
      unused: await deleteUnusedRaws(tx, dropped),
    }
  })
  meters.filed.inc(messages.length)
  if (messages.length > 0) deps.onFiled?.(messages)
  for (const { id, inboxId: inbox, threadId: thread } of messages)
    log.info({ message: id, inbox, thread }, 'mail filed')
  for (const { rawId } of rows) deps.rawCache?.delete(rawId)
  await deleteBlobs({ db, blobs }, unused)
  // Releases the bytes last: after a fault before this, `commitRows` commits the same rows again.
  releaseBytes(rows.flatMap(({ text, html }) => [text, html]))
  return rows.map(() => 'done')
}

/** Postpones a mail that cannot be filed, so that it never blocks the others. */
async function putOff(deps: FilingDeps, claim: Claim, mail: SpooledMail, error: unknown): Promise<void> {
  const { db, clock, log, blobs } = deps
  const counted = (await mayPass(error, blobs)) ? 0 : 1
  const failures = mail.failures + counted
  log.error({ err: error, message: mail.id, failures }, 'mail could not be filed')
  const waitMs = counted === 0 ? ownFaultWaitMs : backoffMs(retryMs, failures)
  const dueAt = new Date(clock.nowMs() + waitMs)
  await putBackWork(db.writer, claim, [mail.id], { dueAt, failures: counted })
}
