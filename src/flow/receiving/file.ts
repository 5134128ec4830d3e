// Files received mail: parses it, finds its thread, stores the message; the spool row goes in the same commit.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { newId, type OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import type { TimeLimit } from '../../base/thread-pool.ts'
import { traced } from '../../base/trace.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { type ParsePool, ParseTimedOut, viewAsText } from '../../mail/parse-pool.ts'
import type { MailBytes, ReadMail } from '../../mail/parse-worker.ts'
import { takesNoReply } from '../../mail/read/automatic.ts'
import type { ParsedMail } from '../../mail/read/parse.ts'
import { releaseBytes } from '../../postgres/columns.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import { type FiledMessage, fileMessages } from '../../store/messages.ts'
import { deleteUnusedRaws, findBytes } from '../../store/raws.ts'
import { readSpool, type SpooledMail } from '../../store/spool.ts'
import { type Claim, type ClaimedWork, putBackWork } from '../../store/work.ts'
import type { Claims } from '../claims.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { withMailBytes } from '../mail-bytes.ts'
import { areBytesLost, failAsFault, mayPass, ownFaultWaitMs } from '../own-fault.ts'

export interface FilingDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
  parsePool: Pick<ParsePool, 'parse'>
  claims: Claims
  /** Whose mail is slow to read: the worker that has a time limit leaves it to the one that has none. */
  slow?: Set<OrganizationId>
  /** Received here and not filed yet, by the id of the raw row; what is not there is read back. */
  atHand?: RecentlyUsed<Buffer> | undefined
  /** Called with what became messages, once that is committed. */
  onFiled?(messages: readonly FiledMessage[]): void
  /** The one organization whose mail this worker takes, however long it takes to read. */
  only?: OrganizationId
}

type Spooled = SpooledMail & { bytes: Buffer | null }

/** After so many failures a mail is filed as plain text, without asking the parser; without any, where its bytes are lost. */
const maxFailures = 5
const retryMs = [1_000, 5_000, 30_000, 60_000]
/** Bytes of mail read at once: what comes in is not ours to bound, what is taken up is. */
const maxBytes = 16 << 20
/** Mails that the parser has at once; no further one is begun past `readingMs`. */
const readAtOnce = 8
const readingMs = 1_000
/**
 * What takes longer to read is left to the worker for slow mail, with all that its organization has behind it, so that no
 * batch waits for its slowest mail. Honest mail of 5 MB takes a fifth of this.
 */
const timeLimitMs = 500
const unevaluated = {
  authentication: { spf: 'not_evaluated', dkim: 'not_evaluated', dmarc: 'not_evaluated' },
}
/** Longer Message-IDs do not fit an index, and no honest mail has one. */
const maxMessageIdBytes = 998

/**
 * Files up to `limit` spooled mails; returns whether there is more to do at once. They are claimed in a commit of its own, read
 * outside any transaction, and filed in one that asks whether they are still the claim's. What is left undone is given back.
 */
export async function fileSpooled(deps: FilingDeps, limit: number): Promise<boolean> {
  const { claims, slow = [], only } = deps
  const whose = only ? { only } : { passedOver: [...slow] }
  return await claims.each({ limit, maxBytes, ...whose }, (claimed, undone) =>
    fileClaimed(deps, claimed, undone),
  )
}

/**
 * Files mail of the next organization whose mail is slow to read; returns whether to go on at once. It takes nothing behind
 * a mail that another worker has, so that the order stays.
 */
export async function fileSlow(
  deps: FilingDeps & { slow: Set<OrganizationId> },
  limit: number,
): Promise<boolean> {
  const { slow } = deps
  const [only] = slow
  if (only === undefined) return false
  let filed = 0
  const onFiled = (messages: readonly FiledMessage[]) => {
    filed += messages.length
    deps.onFiled?.(messages)
  }
  const isMore = await fileSpooled({ ...deps, only, onFiled }, limit)
  slow.delete(only)
  if (isMore) slow.add(only)
  return filed > 0
}

/** Takes out of `undone` what was filed or put off. */
async function fileClaimed(
  deps: FilingDeps,
  { claim, ids }: ClaimedWork,
  undone: Set<string>,
): Promise<void> {
  const mails = await withBytes(deps, await readSpool(deps.db, ids))
  const reading = await readInTime(deps, mails)
  for (const organization of reading.late) deps.slow?.add(organization)
  const filed = inOrder(mails, reading)
  const messages = filed.map((mail) => reading.read.get(mail)!)
  const results = await commitRows(messages, (rows) => commit(deps, claim, rows).catch(failAsFault))
  for (const [i, mail] of filed.entries()) {
    const result = results[i]
    if (result instanceof DbFault) reading.failed.set(mail, result)
    else undone.delete(mail.id)
  }
  for (const [mail, error] of reading.failed) {
    await putOff(deps, claim, mail, error)
    undone.delete(mail.id)
  }
}

async function withBytes({ db, atHand }: FilingDeps, mails: SpooledMail[]): Promise<Spooled[]> {
  const here = mails.map(({ rawId }) => atHand?.use(rawId))
  const missing = mails.flatMap(({ rawId, blob }, i) => (here[i] || blob ? [] : rawId))
  const read = await findBytes(db, missing)
  return mails.map((mail, i) => ({ ...mail, bytes: here[i] ?? read.get(mail.rawId) ?? null }))
}

/** What was read, up to the first of each organization that was not: what is behind that may answer it. */
function inOrder(mails: Spooled[], { read, failed }: Reading): Spooled[] {
  const waiting = new Set<OrganizationId>()
  return mails.filter((mail) => {
    if (!read.has(mail) && !failed.has(mail)) waiting.add(mail.organizationId)
    return read.has(mail) && !waiting.has(mail.organizationId)
  })
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
async function putOff(deps: FilingDeps, claim: Claim, mail: Spooled, error: unknown): Promise<void> {
  const { db, clock, log, blobs } = deps
  const counted = (await mayPass(error, blobs)) ? 0 : 1
  const failures = mail.failures + counted
  log.error({ err: error, message: mail.id, failures }, 'a mail could not be filed')
  const waitMs = counted === 0 ? ownFaultWaitMs : backoffMs(retryMs, failures)
  const dueAt = new Date(clock.nowMs() + waitMs)
  await putBackWork(db.writer, claim, [mail.id], { dueAt, failures: counted })
}

/** What became of mails that were to be read; of some nothing, for there was no time. */
interface Reading {
  read: Map<Spooled, FiledMessage>
  failed: Map<Spooled, unknown>
  /** Whose mail takes long to read. */
  late: Set<OrganizationId>
}

/** Reads as many as there is time for, of organizations in turn. */
async function readInTime(deps: FilingDeps, mails: Spooled[]): Promise<Reading> {
  const reading: Reading = { read: new Map(), failed: new Map(), late: new Set() }
  const rows = interleaved(mails).values()
  const untilMs = performance.now() + readingMs
  const readNext = async () => {
    for (const mail of rows) {
      const describe = () => ({ 'posthorn.message': mail.id, 'posthorn.bytes': mail.sizeBytes })
      await traced('file', describe, () => readOrLeave(deps, mail, reading))
      if (performance.now() > untilMs) return
    }
  }
  await Promise.all(Array.from({ length: deps.only ? 1 : readAtOnce }, readNext))
  return reading
}

/** The first of each organization, the second of each, and so on. */
function interleaved(spooled: Spooled[]): Spooled[] {
  const counts = new Map<OrganizationId, number>()
  const ordered = spooled.map((row) => {
    const ticket = counts.get(row.organizationId) ?? 0
    counts.set(row.organizationId, ticket + 1)
    return { row, ticket }
  })
  return ordered.sort((one, other) => one.ticket - other.ticket).map(({ row }) => row)
}

/**
 * Leaves it where it, or one of its organization before it, takes longer than a worker that has others to file can wait. That
 * is known beforehand of mail in a blob. Measured: eight mails of 24 MB in the batches held up others' mail by 0.4 s each.
 */
async function readOrLeave(deps: FilingDeps, mail: Spooled, { read, failed, late }: Reading): Promise<void> {
  const isInHaste = deps.slow && !deps.only
  if (isInHaste && mail.blob) late.add(mail.organizationId)
  const isWanted = () => !late.has(mail.organizationId)
  if (!isWanted()) return
  try {
    read.set(mail, await prepare(deps, mail, isInHaste ? { timeoutMs: timeLimitMs, isWanted } : undefined))
  } catch (error) {
    if (!(error instanceof ParseTimedOut)) failed.set(mail, error)
    else if (isWanted()) {
      deps.log.warn(
        { message: mail.id },
        'a mail takes long to read: its organization has a worker of its own',
      )
      late.add(mail.organizationId)
    }
  }
}

async function prepare(
  deps: FilingDeps,
  row: Spooled,
  timeLimit: TimeLimit | undefined,
): Promise<FiledMessage> {
  const mail = await withMailBytes(deps.blobs, row, async (raw) =>
    row.failures >= maxFailures ? await viewLeft(deps, row, raw) : await deps.parsePool.parse(raw, timeLimit),
  )
  return compile(row, mail)
}

/** What can be shown of a mail that is not given to the parser any more: its text, or that its bytes are lost. */
async function viewLeft({ blobs, log }: FilingDeps, { id }: Spooled, raw: MailBytes): Promise<ParsedMail> {
  try {
    return await viewAsText(raw, 'shown as plain text, for it could not be filed otherwise')
  } catch (error) {
    if (!(await areBytesLost(error, blobs))) throw error
    log.error({ err: error, message: id }, 'the bytes of a mail are lost: it is filed without its text')
    return await viewAsText(Buffer.alloc(0), 'filed without its text, for its bytes are lost')
  }
}

function compile(row: Spooled, mail: ReadMail): FiledMessage {
  const { from, recipients, helo, remoteIp, tls, protocol, receivedBy, findings = unevaluated } = row.envelope
  const references = mail.references.filter(isIndexable)
  const inReplyTo = mail.inReplyTo && isIndexable(mail.inReplyTo) ? mail.inReplyTo : null
  const messageId =
    mail.messageId && isIndexable(mail.messageId) ? mail.messageId : `<${row.id.slice(4)}@${receivedBy}>`
  const sender = mail.from ?? { email: from }
  return {
    id: row.id,
    inboxId: row.inboxId,
    organizationId: row.organizationId,
    rawId: row.rawId,
    internetMessageId: messageId,
    inReplyTo,
    referenceIds: references,
    // RFC 5322 3.6.4: the parent first, then the references from the nearest to the root.
    ancestors: [...new Set([inReplyTo ?? [], ...references.toReversed()].flat())].filter(
      (id) => id !== messageId,
    ),
    threadId: newId('thread', row.receivedAt.getTime()),
    sender,
    recipients: {
      to: mail.to,
      ...(mail.cc.length > 0 && { cc: mail.cc }),
      ...(mail.replyTo && { replyTo: mail.replyTo }),
    },
    participants: [sender, ...mail.to, ...mail.cc].map(({ email }) => email).filter((email) => email !== ''),
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    extractedText: mail.extractedText,
    attachments: mail.attachments.map(({ sizeBytes, ...entry }) => ({
      ...entry,
      size: sizeBytes,
      scanState: 'unscanned' as const,
    })),
    security: {
      envelope: { from, recipients, protocol, receivedBy },
      smtp: { remoteIp, helo, tls },
      ...(mail.content && { content: mail.content }),
      ...findings,
    },
    // RFC 3834 2: mail without a return path must not be answered.
    isAutomatic: mail.isAutomatic || takesNoReply(from),
    note: mail.note,
    receivedAt: row.receivedAt,
  }
}

function isIndexable(id: string): boolean {
  return Buffer.byteLength(id) <= maxMessageIdBytes
}
