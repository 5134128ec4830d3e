// Mail for operators: captured mail, and mail to the service's own addresses. Listed, read, and marked as read.
import type { Readable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Mailbox } from '../../mail/address.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import type { ReadMail } from '../../mail/parse-worker.ts'
import { type ParsedAttachment, readHead } from '../../mail/read/parse.ts'
import { findFields, readField } from '../../mail/read/raw-fields.ts'
import type { SafeHtml } from '../../mail/read/shown-html.ts'
import type { Db, Queryable } from '../../postgres/db.ts'
import { type CapturedRow, deleteCaptured, findCaptured, listCaptured } from '../../store/mailbox/captured.ts'
import { findKept, type KeptMail, listKept, markKeptRead } from '../../store/mailbox/kept-mail.ts'
import { findStarts, type RawRow } from '../../store/mailbox/raws.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { openRaw, openStored } from '../stored-bytes.ts'

/** `kept`: mail for postmaster@, abuse@ and other addresses of the service, and reports that could not be read. */
export type MailKind = 'captured' | 'kept'

export interface OperatorMail {
  id: string
  /** The envelope's sender. */
  sender: string
  recipients: string[]
  at: Date
  rawId: string
  sizeBytes: number
  /** The author; null if the header names none. */
  from: Mailbox | null
  /** Empty if the header has none. */
  subject: string
  /** No operator has read it yet; always false for captured mail. */
  isUnread: boolean
}

interface Deps {
  db: Queryable
  blobs: Blobs
}

/** Additional dependencies to mark a mail as read. */
interface MarkDeps extends Deps {
  db: Db
  clock: Clock
}

interface ParseDeps {
  parsePool: Pick<ParsePool, 'parse'>
}

/** Bytes of a mail that are enough to list its author and subject. */
const startBytes = 16 * 1024
const headerBytes = 128 * 1024
const maxFields = 300
const maxValue = 2_000
const maxText = 500_000
/** Larger mail can only be downloaded. */
const maxReadBytes = 32 << 20

export interface MailPage {
  /** Start of the page: mails older than this id. */
  beforeId: string | null
  limit: number
  /** Only unread mails. */
  isUnread?: boolean
}

/** Newest first. */
export async function listOperatorMail(
  { db, blobs }: Deps,
  kind: MailKind,
  { beforeId, limit, isUnread = false }: MailPage,
): Promise<OperatorMail[]> {
  const mails =
    kind === 'captured'
      ? (await listCaptured(db, beforeId === null ? null : requireUuid(beforeId), limit)).map(ofCaptured)
      : (await listKept(db, { beforeId, limit, isUnread })).map(ofKept)
  const starts = await findStarts(
    db,
    mails.map(({ rawId }) => rawId),
    startBytes,
  )
  return await Promise.all(
    mails.map(async (mail) => {
      const start = starts.get(mail.rawId)
      // A mail that was deleted meanwhile is listed without its author.
      return start ? { ...mail, ...readHead(await readStart(blobs, start)) } : mail
    }),
  )
}

async function readStart(blobs: Blobs, raw: RawRow): Promise<Buffer> {
  const stream = await openRaw(blobs, raw, { start: 0, length: Math.min(raw.sizeBytes, startBytes) })
  return Buffer.concat(stream ? await stream.toArray() : [])
}

export interface ReadOperatorMail {
  mail: OperatorMail
  header: { fields: { name: string; value: string }[]; isCut: boolean }
  content: {
    /** Made from the HTML if there is no text. Cut to what a page can show. */
    text: string
    html: 'beside' | 'none'
    attachments: ParsedAttachment[]
    /** Missing or changed parts of this view, and why. */
    note: string | null
  }
}

/** One mail with its header and text. Marks it as read. Throws `not_found` if it is gone. */
export async function readOperatorMail(
  deps: MarkDeps & ParseDeps,
  kind: MailKind,
  id: string,
): Promise<ReadOperatorMail> {
  const { mail, start, parsed } = await parseMail(deps, kind, id, maxReadBytes)
  const { text, html, attachments, note } = parsed
  const whole = textOf(text)
  await markRead(deps, mail)
  return {
    mail: { ...mail, isUnread: false },
    header: readFields(start),
    content: {
      text: whole.slice(0, maxText),
      html: html === null ? 'none' : 'beside',
      attachments,
      note: whole.length > maxText ? 'only the beginning of its text is shown' : note,
    },
  }
}

/** A captured mail as its reader would see it: its text, and its HTML made safe. Throws `not_found` if it is gone. */
export async function readCaptured(
  { parsePool, ...deps }: Deps & { parsePool: Pick<ParsePool, 'parse' | 'pageOf'> },
  id: string,
): Promise<{ mail: OperatorMail; parsed: ReadMail & { text: string }; page: SafeHtml | null }> {
  const { mail, parsed } = await parseMail({ ...deps, parsePool }, 'captured', id, Number.POSITIVE_INFINITY)
  const page = parsed.html === null ? null : await parsePool.pageOf(textOf(parsed.html))
  return { mail, parsed: { ...parsed, text: textOf(parsed.text) }, page }
}

/** The mail's bytes, as received. */
export async function openCaptured(deps: Deps, id: string): Promise<{ sizeBytes: number; stream: Readable }> {
  return await openMail(deps, await findMail(deps, 'captured', id))
}

/** Deletes all captured mail, whatever organization sent it. */
export async function clearCaptured({ db, blobs }: { db: Db; blobs: Blobs }): Promise<void> {
  await deleteBlobs({ db, blobs }, await db.transaction(deleteCaptured))
}

async function parseMail(
  deps: Deps & ParseDeps,
  kind: MailKind,
  id: string,
  maxBytes: number,
): Promise<{ mail: OperatorMail; start: Buffer; parsed: ReadMail }> {
  const mail = await findMail(deps, kind, id)
  const { stream } = await openMail(deps, mail, Math.min(mail.sizeBytes, maxBytes))
  const bytes = Buffer.concat(await stream.toArray())
  const start = bytes.subarray(0, headerBytes)
  const parsed = await deps.parsePool.parse(bytes)
  // Even if the parser gives up, the header names the author.
  return { mail: { ...mail, ...readHead(start) }, start, parsed }
}

/** The mail's bytes, as received. Marks it as read. */
export async function openOperatorMail(
  deps: MarkDeps,
  kind: MailKind,
  id: string,
): Promise<{ sizeBytes: number; stream: Readable }> {
  const mail = await findMail(deps, kind, id)
  const stored = await openMail(deps, mail)
  await markRead(deps, mail)
  return stored
}

/** The mail's first `length` bytes, or all of them. */
async function openMail(
  deps: Deps,
  { id, rawId, sizeBytes }: OperatorMail,
  length = sizeBytes,
): Promise<{ sizeBytes: number; stream: Readable }> {
  const stored = await openStored(deps, rawId, { start: 0, length })
  if (!stored) throw gone(id)
  return stored
}

async function markRead({ db, clock }: MarkDeps, { id, isUnread }: OperatorMail): Promise<void> {
  if (isUnread) await markKeptRead(db.writer, id, clock.now())
}

async function findMail({ db }: Pick<Deps, 'db'>, kind: MailKind, id: string): Promise<OperatorMail> {
  const mail = kind === 'kept' ? await findKept(db, id) : await findCaptured(db, requireUuid(id))
  if (!mail) throw gone(id)
  return 'capturedAt' in mail ? ofCaptured(mail) : ofKept(mail)
}

function gone(id: string): ServiceError {
  return new ServiceError('not_found', `there is no mail ${id}, or it has expired and was deleted`)
}

function requireUuid(given: string): string {
  const id = given.toLowerCase()
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw gone(given)
  return id
}

function ofCaptured({ id, sender, recipients, capturedAt, rawId, sizeBytes }: CapturedRow): OperatorMail {
  const unopened = { from: null, subject: '', isUnread: false }
  return { id, sender, recipients, at: capturedAt, rawId, sizeBytes, ...unopened }
}

function ofKept({ id, envelope, rawId, sizeBytes, receivedAt, readAt }: KeptMail): OperatorMail {
  const { from: sender, recipients } = envelope
  const unopened = { from: null, subject: '', isUnread: readAt === null }
  return { id, sender, recipients, at: receivedAt, rawId, sizeBytes, ...unopened }
}

function readFields(start: Buffer): ReadOperatorMail['header'] {
  const { spans, isCut } = findFields(start)
  const fields = spans.slice(0, maxFields).map((span) => {
    const { name, value } = readField(start, span)
    return { name, value: value.length > maxValue ? `${value.slice(0, maxValue)}…` : value }
  })
  return { fields, isCut: isCut || spans.length > maxFields }
}

/** The parser returns large texts as bytes. */
function textOf(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : Buffer.from(text).toString()
}
