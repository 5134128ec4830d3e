// Files received mail: parses it, finds its thread, stores the message; the spool row goes in the same commit.
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
import type { Claims } from '../claims.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { failAsFault, mayPass, ownFaultWaitMs } from '../own-fault.ts'
import { type BatchDeps, type ReadBatch, readBatch } from './read-batch.ts'

export interface FilingDeps extends BatchDeps {
  db: Db
  clock: Clock
  claims: Claims
  /** The organizations whose mail is slow to read, for `fileSlow`. If there is no such worker, mail takes as long as it takes. */
  slow?: Set<OrganizationId>
  /** Called with what became messages, once that is committed. */
  onFiled?(messages: readonly FiledMessage[]): void
}

const retryMs = [1_000, 5_000, 30_000, 60_000]
/** Bytes of mail read at once: what comes in is not ours to bound, what is taken up is. */
const maxBytes = 16 << 20
/** Mails that the parser has at once. */
const readAtOnce = 8
/**
 * A mail that takes longer to read is left to the worker for slow mail, with all that its organization has behind it, so that
 * no batch waits for its slowest mail. Honest mail of 5 MB takes a fifth of this.
 */
const timeLimitMs = 500

/**
 * Files up to `limit` spooled mails; returns whether there is more to do at once. They are claimed in a commit of its own, read
 * outside any transaction, and filed in one that asks whether they are still the claim's. What is left undone is given back.
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
 * Files mail of the next organization whose mail is slow to read; returns whether to go on at once. It takes nothing behind
 * a mail that another worker has, so that the order stays.
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

/** Takes out of `undone` what was filed or put off; returns how many mails were filed. */
async function fileBatch(
  deps: FilingDeps,
  claim: Claim,
  { read, failed }: ReadBatch,
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
  return read.length - refused.length
}

/** Files what is still the claim's; what was received for an inbox that has been deleted meanwhile goes with it. */
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
    log.info({ message: id, inbox, thread }, 'a mail was filed')
  for (const { rawId } of rows) deps.atHand?.delete(rawId)
  await deleteBlobs({ db, blobs }, unused)
  // Last: whatever fails before it, the rows can be committed again.
  releaseBytes(rows.flatMap(({ text, html }) => [text, html]))
  return rows.map(() => 'done')
}

/** A mail that cannot be filed waits, so that it never holds up the others. */
async function putOff(deps: FilingDeps, claim: Claim, mail: SpooledMail, error: unknown): Promise<void> {
  const { db, clock, log, blobs } = deps
  const counted = (await mayPass(error, blobs)) ? 0 : 1
  const failures = mail.failures + counted
  log.error({ err: error, message: mail.id, failures }, 'a mail could not be filed')
  const waitMs = counted === 0 ? ownFaultWaitMs : backoffMs(retryMs, failures)
  const dueAt = new Date(clock.nowMs() + waitMs)
  await putBackWork(db.writer, claim, [mail.id], { dueAt, failures: counted })
}
