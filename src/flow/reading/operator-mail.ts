// Mail that is for the operator: what was captured, and what came for the service's own addresses. Read, and marked as read.
import type { Readable } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import type { ParsedAttachment } from '../../mail/read/parse.ts'
import { findFields, readField } from '../../mail/read/raw-fields.ts'
import type { Db } from '../../postgres/db.ts'
import { type CapturedRow, findCaptured, listCaptured } from '../../store/mailbox/captured.ts'
import { findKept, type KeptMail, listKept, markKeptRead } from '../../store/mailbox/kept-mail.ts'
import { openStored } from '../stored-bytes.ts'

/** `kept`: for postmaster@, abuse@ and others of the service's own, and reports that could not be read. */
export type MailKind = 'captured' | 'kept'

export interface OperatorMail {
  id: string
  /** Of the envelope. */
  sender: string
  recipients: string[]
  at: Date
  rawId: string
  sizeBytes: number
  /** What its header says, decoded; null where it does not. */
  from: string | null
  subject: string | null
  /** Nobody has read it yet; of captured mail nobody keeps that. */
  isUnread: boolean
}

interface Deps {
  db: Db
  blobs: Blobs
}

interface OpenDeps extends Deps {
  clock: Clock
}

interface ReadDeps extends OpenDeps {
  parsePool: Pick<ParsePool, 'parse'>
}

/** Enough of a mail for a list to say whose it is and what it is about. */
const startBytes = 16 * 1024
const headerBytes = 128 * 1024
const maxFields = 300
const maxValue = 2_000
const maxText = 500_000
/** Larger mail is to be downloaded. */
const maxReadBytes = 32 << 20

export interface MailPage {
  /** The list goes on behind the one with this id. */
  beforeId: string | null
  limit: number
  /** Only those that nobody has read. */
  isUnread?: boolean
}

/** Newest first. */
export async function listOperatorMail(
  deps: Deps,
  kind: MailKind,
  { beforeId, limit, isUnread = false }: MailPage,
): Promise<OperatorMail[]> {
  const { db } = deps
  const mails =
    kind === 'captured'
      ? (await listCaptured(db, beforeId === null ? null : requireUuid(beforeId), limit, 0)).map(ofCaptured)
      : (await listKept(db, { beforeId, limit, isUnread })).map(ofKept)
  return await Promise.all(mails.map((mail) => withStart(deps, mail)))
}

export interface ReadOperatorMail {
  mail: OperatorMail
  header: { fields: { name: string; value: string }[]; isCut: boolean }
  content: {
    /** Made of the HTML where there is no other; no more than a page can show. */
    text: string
    html: 'beside' | 'none'
    attachments: ParsedAttachment[]
    /** What is not shown, or otherwise than it was meant, and why. */
    note: string | null
  }
}

/** One mail with its header and what it says, which is read then; `not_found` where it has gone. */
export async function readOperatorMail(
  deps: ReadDeps,
  kind: MailKind,
  id: string,
): Promise<ReadOperatorMail> {
  const mail = await findMail(deps, kind, id)
  const length = Math.min(mail.sizeBytes, maxReadBytes)
  const bytes = await readBytes(deps, mail.rawId, length)
  if (!bytes) throw gone(id)
  const content = await readContent(deps, bytes)
  await markRead(deps, mail)
  return {
    mail: { ...mail, ...authorOf(bytes), isUnread: false },
    header: readFields(bytes.subarray(0, headerBytes)),
    content,
  }
}

async function readContent({ parsePool }: ReadDeps, bytes: Buffer): Promise<ReadOperatorMail['content']> {
  const { text, html, attachments, note } = await parsePool.parse(bytes)
  const whole = typeof text === 'string' ? text : Buffer.from(text).toString()
  return {
    text: whole.slice(0, maxText),
    html: html === null ? 'none' : 'beside',
    attachments,
    note: whole.length > maxText ? 'only the beginning of its text is shown' : note,
  }
}

/** Its bytes, as they came; it is read then. */
export async function openOperatorMail(
  deps: OpenDeps,
  kind: MailKind,
  id: string,
): Promise<{ sizeBytes: number; stream: Readable }> {
  const mail = await findMail(deps, kind, id)
  const stored = await openStored(deps, mail.rawId)
  if (!stored) throw gone(id)
  await markRead(deps, mail)
  return stored
}

async function markRead({ db, clock }: OpenDeps, { id, isUnread }: OperatorMail): Promise<void> {
  if (isUnread) await markKeptRead(db.writer, id, clock.now())
}

async function findMail({ db }: Deps, kind: MailKind, id: string): Promise<OperatorMail> {
  const mail = kind === 'kept' ? await findKept(db, id) : await findCaptured(db, requireUuid(id))
  if (!mail) throw gone(id)
  return 'capturedAt' in mail ? ofCaptured(mail) : ofKept(mail)
}

function gone(id: string): ServiceError {
  return new ServiceError(
    'not_found',
    `there is no mail ${id}, or no longer: mail is deleted when its time is over`,
  )
}

function requireUuid(given: string): string {
  const id = given.toLowerCase()
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw gone(given)
  return id
}

function ofCaptured({ id, sender, recipients, capturedAt, rawId, sizeBytes }: CapturedRow): OperatorMail {
  const unopened = { from: null, subject: null, isUnread: false }
  return { id, sender, recipients, at: capturedAt, rawId, sizeBytes, ...unopened }
}

function ofKept({ id, envelope, rawId, sizeBytes, receivedAt, readAt }: KeptMail): OperatorMail {
  const { from: sender, recipients } = envelope
  const unopened = { from: null, subject: null, isUnread: readAt === null }
  return { id, sender, recipients, at: receivedAt, rawId, sizeBytes, ...unopened }
}

/** One that has gone meanwhile is listed without its author. */
async function withStart(deps: Deps, mail: OperatorMail): Promise<OperatorMail> {
  const start = await readBytes(deps, mail.rawId, Math.min(mail.sizeBytes, startBytes))
  return start ? { ...mail, ...authorOf(start) } : mail
}

async function readBytes(deps: Deps, rawId: string, length: number): Promise<Buffer | null> {
  const stored = await openStored(deps, rawId, { start: 0, length })
  if (!stored) return null
  const chunks: Buffer[] = []
  for await (const chunk of stored.stream as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function authorOf(start: Buffer): Pick<OperatorMail, 'from' | 'subject'> {
  const { fields } = readFields(start.subarray(0, startBytes))
  const valueIn = (wanted: string) => fields.find(({ name }) => name.toLowerCase() === wanted)?.value ?? null
  return { from: valueIn('from'), subject: valueIn('subject') }
}

function readFields(start: Buffer): ReadOperatorMail['header'] {
  const { spans, isCut } = findFields(start)
  const fields = spans.slice(0, maxFields).map((span) => {
    const { name, value } = readField(start, span)
    return { name, value: value.length > maxValue ? `${value.slice(0, maxValue)}…` : value }
  })
  return { fields, isCut: isCut || spans.length > maxFields }
}
