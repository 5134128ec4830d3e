// Reads a batch of spooled mail in the parser: round robin over organizations, with a time limit per mail and batch.
import { newId, type OrganizationId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import { traced } from '../../base/trace.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { type ParsePool, ParseTimedOut, viewAsText } from '../../mail/parse-pool.ts'
import type { MailBytes, ReadMail } from '../../mail/parse-worker.ts'
import { takesNoReply } from '../../mail/read/automatic.ts'
import type { ParsedMail } from '../../mail/read/parse.ts'
import type { DbFault, Queryable } from '../../postgres/db.ts'
import { readUntorn } from '../../postgres/read-untorn.ts'
import type { FiledMessage } from '../../store/mailbox/messages.ts'
import { findBytes } from '../../store/mailbox/raws.ts'
import { readSpool, type SpooledMail } from '../../store/mailbox/spool.ts'
import { areBytesLost } from '../own-fault.ts'
import { withMailBytes } from '../stored-bytes.ts'

export interface BatchDeps {
  db: Queryable
  log: Log
  blobs: Blobs
  parsePool: Pick<ParsePool, 'parse'>
  /**
   * The bytes of mail received on this node and not filed yet, by id of the raw row. Bytes not in it are read from the
   * database.
   */
  rawCache?: RecentlyUsed<Buffer> | undefined
}

export interface Pace {
  /** How many mails the parser reads at once. */
  atOnce: number
  /** The time limit for a mail. Null: no limit. */
  timeLimitMs: number | null
}

export interface ReadBatch {
  /** In the order of arrival. Ends for each organization at its first unread mail, as later ones may answer it. */
  read: { mail: SpooledMail; message: FiledMessage }[]
  failed: { mail: SpooledMail; error: unknown }[]
  /** The mails that need a torn page of the database, by id. */
  torn: Map<string, DbFault>
  /** The organizations whose mail exceeds the time limit. */
  late: Set<OrganizationId>
}

type Spooled = SpooledMail & { bytes: Buffer | null }

/** After this many failures a mail is filed as plain text without the parser, or without text if its bytes are lost. */
const maxFailures = 5
/** No further mail is begun after this time. */
const readingMs = 1_000
const unevaluated = {
  authentication: { spf: 'not_evaluated', dkim: 'not_evaluated', dmarc: 'not_evaluated' },
}
/** A longer Message-ID does not fit an index, and no legitimate mail has one. */
const maxMessageIdBytes = 998

/**
 * Reads claimed mails. A mail is in no list if it was not read in time, or was read but arrived after such a mail of
 * its organization.
 */
export async function readBatch(
  deps: BatchDeps,
  ids: readonly string[],
  { atOnce, timeLimitMs }: Pace,
): Promise<ReadBatch> {
  const { rows: mails, torn } = await readUntorn(ids.toSorted(), async (some) =>
    withBytes(deps, await readSpool(deps.db, some)),
  )
  const late = new Set<OrganizationId>()
  const outcomes = new Map<Spooled, Outcome>()
  const rows = interleaved(mails).values()
  const untilMs = performance.now() + readingMs
  const readNext = async () => {
    for (const mail of rows) {
      const describe = () => ({ 'posthorn.message': mail.id, 'posthorn.bytes': mail.sizeBytes })
      const outcome = await traced('file', describe, () => readOrLeave(deps, mail, timeLimitMs, late))
      if (outcome) outcomes.set(mail, outcome)
      if (performance.now() > untilMs) return
    }
  }
  await Promise.all(Array.from({ length: atOnce }, readNext))
  return { ...inOrder(mails, outcomes), torn, late }
}

async function withBytes({ db, rawCache }: BatchDeps, mails: SpooledMail[]): Promise<Spooled[]> {
  const cached = mails.map(({ rawId }) => rawCache?.use(rawId))
  const missing = mails.flatMap(({ rawId, blob }, i) => (cached[i] || blob ? [] : rawId))
  const read = await findBytes(db, missing)
  return mails.map((mail, i) => ({ ...mail, bytes: cached[i] ?? read.get(mail.rawId) ?? null }))
}

type Outcome = { message: FiledMessage } | { error: unknown }

function inOrder(mails: Spooled[], outcomes: Map<Spooled, Outcome>): Pick<ReadBatch, 'read' | 'failed'> {
  const found: Pick<ReadBatch, 'read' | 'failed'> = { read: [], failed: [] }
  const waiting = new Set<OrganizationId>()
  for (const mail of mails) {
    const outcome = outcomes.get(mail)
    if (!outcome) waiting.add(mail.organizationId)
    else if ('error' in outcome) found.failed.push({ mail, error: outcome.error })
    else if (!waiting.has(mail.organizationId)) found.read.push({ mail, message: outcome.message })
  }
  return found
}

/** Round robin: the first mail of each organization, then the second of each, and so on. */
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
 * Returns null, and leaves the mail unread, if it or an earlier mail of its organization exceeds the time limit. Mail in a
 * blob counts as too slow without a try. Measured: eight mails of 24 MB in the batches delayed the mail of other
 * organizations by 0.4 s each.
 */
async function readOrLeave(
  deps: BatchDeps,
  mail: Spooled,
  timeLimitMs: number | null,
  late: Set<OrganizationId>,
): Promise<Outcome | null> {
  if (timeLimitMs !== null && mail.blob) late.add(mail.organizationId)
  const isWanted = () => !late.has(mail.organizationId)
  if (!isWanted()) return null
  try {
    const timeLimit = timeLimitMs === null ? undefined : { timeoutMs: timeLimitMs, isWanted }
    const parsed = await withMailBytes(deps.blobs, mail, async (raw) =>
      mail.failures >= maxFailures
        ? await viewLeft(deps, mail, raw)
        : await deps.parsePool.parse(raw, timeLimit),
    )
    return { message: compile(mail, parsed) }
  } catch (error) {
    if (!(error instanceof ParseTimedOut)) return { error }
    if (isWanted())
      deps.log.warn({ message: mail.id }, 'mail takes long to parse; its organization gets a separate worker')
    late.add(mail.organizationId)
    return null
  }
}

/** Shows a mail without the parser: as text, or without text if its bytes are lost. */
async function viewLeft({ blobs, log }: BatchDeps, { id }: Spooled, raw: MailBytes): Promise<ParsedMail> {
  try {
    return await viewAsText(raw, 'shown as plain text, for it could not be filed otherwise')
  } catch (error) {
    if (!(await areBytesLost(error, blobs))) throw error
    log.error({ err: error, message: id }, 'bytes of a mail are lost; it is filed without its text')
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
