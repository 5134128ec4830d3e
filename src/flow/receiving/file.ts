// Files received mail: parses it, finds its thread, stores the message; the spool row goes in the same commit.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { newId, type OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import { Rotation } from '../../base/rotation.ts'
import type { TimeLimit } from '../../base/thread-pool.ts'
import { type Ticket, Tickets } from '../../base/tickets.ts'
import { traced } from '../../base/trace.ts'
import type { UnderWay } from '../../base/under-way.ts'
import type { DiskBlobs } from '../../blobs/disk.ts'
import { type ParsePool, ParseTimedOut, viewAsText } from '../../mail/parse-pool.ts'
import type { MailBytes, ReadMail } from '../../mail/parse-worker.ts'
import type { ParsedMail } from '../../mail/read/parse.ts'
import { type Db, DbFault, type Tx } from '../../postgres/db.ts'
import { type FiledMessage, fileMessages } from '../../store/messages.ts'
import { deleteUnusedRaws, findBytes } from '../../store/raws.ts'
import { claimSpool, noteFailedSpool, postponeSpool, type SpooledMail } from '../../store/spool.ts'
import { keepClaims } from '../../store/work.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { areBytesLost, mayPass, ownFaultWaitMs } from '../own-fault.ts'

export interface FilingDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: DiskBlobs
  parsePool: Pick<ParsePool, 'parse'>
  underWay: UnderWay
  /** Mail that has failed more often is left to others. */
  maxFailures?: number
  /** Shared by the workers of a node, which file in one order: a reply that is filed before its parent begins a thread anew. */
  tickets?: Tickets
  /** Which organizations come next. The workers of a node share its `slow`. */
  rotation?: Rotation
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
 * Files up to `limit` spooled mails; returns whether there is more to do at once. Advisory locks are the claim: other nodes
 * pass over them, a crash lets go of them, and until the mails are read nothing is written that others would wait for.
 */
export async function fileSpooled(deps: FilingDeps, limit: number): Promise<boolean> {
  await noteLost(deps)
  try {
    return await fileSome(deps, limit, () => {})
  } catch (error) {
    if (error instanceof DbFault && error.kind === 'lost') throw error
    deps.log.warn({ err: error }, 'a batch could not be filed; its mails are tried one by one')
    return await fileOneByOne(deps, limit)
  }
}

/**
 * Files mail of the next organization whose mail is slow to read; returns whether to go on at once. It takes nothing behind
 * a mail that another worker has, so that the order stays.
 */
export async function fileSlow(deps: FilingDeps & { rotation: Rotation }, limit: number): Promise<boolean> {
  const { slow } = deps.rotation
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

/**
 * Counts a failure of each mail that was being read when this node ended: one of them may have ended it. They are taken
 * one by one from then on, so that the next time it is known which.
 */
async function noteLost({ db, clock, log, underWay }: FilingDeps): Promise<void> {
  const lost = underWay.lost()
  if (lost.length === 0) return
  log.warn({ messages: lost }, 'this node ended while it read mails; they are tried one by one')
  await noteFailedSpool(db.writer, lost, new Date(clock.nowMs() + backoffMs(retryMs, 1)))
  underWay.end()
}

/** A mail that cannot be filed waits, so that it never holds up the others. */
async function fileOneByOne(deps: FilingDeps, limit: number): Promise<boolean> {
  for (let count = 0; count < limit; count++) {
    let current: Spooled | undefined
    try {
      const isMore = await fileSome(deps, 1, ([claimed]) => (current = claimed))
      if (!isMore) return false
    } catch (error) {
      if (!current || (error instanceof DbFault && error.kind === 'lost')) throw error
      const failures = current.failures + ((await mayPass(error, deps.blobs)) ? 0 : 1)
      deps.log.error({ err: error, message: current.id, failures }, 'a mail could not be filed')
      const after = (waitMs: number) => new Date(deps.clock.nowMs() + waitMs)
      if (failures === current.failures)
        await postponeSpool(deps.db.writer, [current.id], after(ownFaultWaitMs))
      else await noteFailedSpool(deps.db.writer, [current.id], after(backoffMs(retryMs, failures)))
    }
  }
  return true
}

type OnClaimed = (spooled: Spooled[]) => void

async function fileSome(deps: FilingDeps, limit: number, onClaimed: OnClaimed): Promise<boolean> {
  const { log, blobs, tickets = new Tickets() } = deps
  const ticket = tickets.come()
  const { more, unused, messages } = await fileWithTicket(deps, limit, onClaimed, ticket).finally(() => {
    ticket.taken()
    ticket.ended()
  })
  meters.filed.inc(messages.length)
  deps.onFiled?.(messages)
  for (const { id, inboxId: inbox, threadId: thread } of messages)
    log.info({ message: id, inbox, thread }, 'a mail was filed')
  for (const { rawId } of messages) deps.atHand?.delete(rawId)
  await deleteBlobs({ db: deps.db, blobs }, unused)
  return more
}

async function fileWithTicket(
  deps: FilingDeps,
  limit: number,
  onClaimed: OnClaimed,
  ticket: Ticket,
): Promise<{ more: boolean; unused: string[]; messages: FiledMessage[] }> {
  const { db, clock } = deps
  return await db.transaction(async (tx) => {
    await ticket.mayTake
    const { taken, isMore } = await claim(deps, tx, limit)
    ticket.taken()
    onClaimed(taken)
    if (taken.length === 0) return { more: isMore, unused: [], messages: [] }
    await keepClaims(tx)
    const read = await prepareAll(deps, taken)
    await ticket.mayFinish
    const filed = inOrder(deps, taken, read)
    const kept = new Set(await fileMessages(tx, filed, clock.now()))
    // What was received for an inbox that has been deleted meanwhile goes with it.
    const dropped = filed.filter(({ id }) => !kept.has(id)).map(({ rawId }) => rawId)
    const messages = filed.filter(({ id }) => kept.has(id))
    return {
      ...{ more: isMore || filed.length < taken.length, messages },
      unused: await deleteUnusedRaws(tx, dropped),
    }
  })
}

async function claim(deps: FilingDeps, tx: Tx, limit: number) {
  const { clock, rotation, only, maxFailures, atHand } = deps
  const whose = only ? { only } : { behind: rotation?.last ?? null, passedOver: [...(rotation?.slow ?? [])] }
  const claimed = await claimSpool(tx, clock.now(), { limit, maxBytes, maxFailures, ...whose })
  if (rotation && !only) rotation.last = claimed.last
  return { ...claimed, taken: await withBytes(tx, claimed.taken, atHand) }
}

async function withBytes(tx: Tx, mails: SpooledMail[], atHand: FilingDeps['atHand']): Promise<Spooled[]> {
  const here = mails.map(({ rawId }) => atHand?.use(rawId))
  const missing = mails.flatMap(({ rawId, blob }, i) => (here[i] || blob ? [] : rawId))
  const read = await findBytes(tx, missing)
  return mails.map((mail, i) => ({ ...mail, bytes: here[i] ?? read.get(mail.rawId) ?? null }))
}

/**
 * What was read, up to the first of each organization that was not: it goes to the line for slow mail, with all behind it. So
 * does what a line that came before found slow meanwhile: nothing is filed before what it may answer.
 */
function inOrder(
  { rotation = new Rotation(), only }: FilingDeps,
  taken: Spooled[],
  read: Map<string, FiledMessage>,
): FiledMessage[] {
  const skipped = new Set(only ? [] : rotation.slow)
  const filed: FiledMessage[] = []
  for (const { id, organizationId } of taken) {
    const message = read.get(id)
    if (skipped.has(organizationId)) continue
    if (message) filed.push(message)
    else skipped.add(organizationId)
  }
  if (only) return filed
  for (const organization of skipped) rotation.slow.add(organization)
  return filed
}

async function prepareAll(deps: FilingDeps, spooled: Spooled[]): Promise<Map<string, FiledMessage>> {
  deps.underWay.begin(spooled.map(({ id }) => id))
  try {
    return await prepareInTime(deps, spooled)
  } finally {
    deps.underWay.end()
  }
}

/** Reads as many as there is time for, of organizations in turn; the others stay in the spool. */
async function prepareInTime(deps: FilingDeps, spooled: Spooled[]): Promise<Map<string, FiledMessage>> {
  const read = new Map<string, FiledMessage>()
  const late = new Set<OrganizationId>()
  const rows = interleaved(spooled).values()
  const untilMs = performance.now() + readingMs
  const readNext = async () => {
    for (const row of rows) {
      const describe = () => ({ 'posthorn.message': row.id, 'posthorn.bytes': row.sizeBytes })
      const filed = await traced('file', describe, () => prepareOrLeave(deps, row, late))
      if (filed) read.set(row.id, filed)
      if (performance.now() > untilMs) return
    }
  }
  await Promise.all(Array.from({ length: deps.only ? 1 : readAtOnce }, readNext))
  return read
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
 * Null where it, or one of its organization before it, takes longer than a line that has others to file can wait. That is
 * known beforehand of mail in a blob. Measured: eight mails of 24 MB in the batches held up others' mail by 0.4 s each.
 */
async function prepareOrLeave(
  deps: FilingDeps,
  row: Spooled,
  late: Set<OrganizationId>,
): Promise<FiledMessage | null> {
  if (!deps.rotation || deps.only) return await prepare(deps, row, undefined)
  if (row.blob) late.add(row.organizationId)
  const isWanted = () => !late.has(row.organizationId)
  if (!isWanted()) return null
  try {
    return await prepare(deps, row, { timeoutMs: timeLimitMs, isWanted })
  } catch (error) {
    if (!(error instanceof ParseTimedOut)) throw error
    deps.log.warn({ message: row.id }, 'a mail takes long to read: its organization has a line of its own')
    late.add(row.organizationId)
    return null
  }
}

async function prepare(
  deps: FilingDeps,
  row: Spooled,
  timeLimit: TimeLimit | undefined,
): Promise<FiledMessage> {
  const raw = row.bytes ?? { path: deps.blobs.pathOf(row.blob!), sizeBytes: row.sizeBytes }
  const mail =
    row.failures >= maxFailures ? await viewLeft(deps, row, raw) : await deps.parsePool.parse(raw, timeLimit)
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
    extractedText: isAllNew(mail) ? null : mail.extractedText,
    attachments: mail.attachments.map(({ sizeBytes, ...entry }) => ({
      ...entry,
      size: sizeBytes,
      scanState: 'unscanned' as const,
    })),
    security: {
      envelope: { from, recipients, protocol, receivedBy },
      smtp: { remoteIp, helo, tls },
      ...findings,
    },
    // RFC 3834 2: what has no return path must not be answered.
    isAutomatic: mail.isAutomatic || from === '',
    note: mail.note,
    receivedAt: row.receivedAt,
  }
}

function isIndexable(id: string): boolean {
  return Buffer.byteLength(id) <= maxMessageIdBytes
}

/** A text that came as bytes is so long that no new text was taken out of it. */
function isAllNew({ text, extractedText }: ReadMail): boolean {
  return typeof text === 'string' && extractedText === withoutMargins(text)
}

/** The text without spaces, tabs and line ends around it; linear, whatever is in it. */
function withoutMargins(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isMargin(text.charCodeAt(start))) start++
  while (end > start && isMargin(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isMargin(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a
}
