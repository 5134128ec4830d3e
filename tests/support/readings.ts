// A mail from strangers as our reader and three others read it, each field in a comparable form.
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import PostalMime, { type Address } from 'postal-mime'
import { splitMime } from '../../src/mail/read/mime-parts.ts'
import { parseMail } from '../../src/mail/read/parse.ts'
import { selectBodies } from '../../src/mail/read/select-bodies.ts'
import { decodeSpan } from './decode-span.ts'

/** Fields by name. An absent field has no reading: the reader failed, or does not return it. */
export type Reading = Partial<Record<Field, string>>

export const fields = [
  ...['from', 'to', 'cc', 'replyTo', 'subject', 'date', 'messageId', 'inReplyTo', 'references'],
  ...['text', 'html', 'attachments', 'filename', 'type', 'size', 'sha256', 'disposition', 'contentId'],
] as const
export type Field = (typeof fields)[number]

export interface Reader {
  name: string
  /** Never rejects because of the mail's content: a reader that fails has no reading. */
  read(raw: Buffer): Promise<Reading>
  close(): void
}

interface FoundMailbox {
  email: string
  name: string
}

interface FoundAttachment {
  filename: string | null
  contentType: string
  disposition: string | null
  contentId: string | null
  content: Buffer
}

/** The reader's own values; undefined if it has no reading of the field. */
interface Found {
  from?: FoundMailbox[] | undefined
  to?: FoundMailbox[] | undefined
  cc?: FoundMailbox[] | undefined
  replyTo?: FoundMailbox[] | undefined
  subject?: string | null | undefined
  date?: Date | null | undefined
  messageId?: string | null | undefined
  inReplyTo?: string | null | undefined
  references?: string | string[] | null | undefined
  text?: string | null | undefined
  html?: string | null | undefined
  attachments?: FoundAttachment[] | undefined
}

/** Ours first, then three independent ones, or two without Python. */
export function openReaders(): Reader[] {
  const readers = [ours, mailparser, postalMime]
  if (spawnSync('python3', ['--version']).status === 0) return [...readers, new PythonReader()]
  if (process.env['CI']) throw new Error('python3 is missing')
  console.log('python3 is missing: our reading is compared with two others instead of three')
  return readers
}

const ours: Reader = {
  name: 'ours',
  async read(raw) {
    const mail = parseMail(raw)
    const bodies = selectBodies(splitMime(raw).root)
    const mailbox = ({ email, name = '' }: { email: string; name?: string }) => ({ email, name })
    return readingOf({
      ...mail,
      from: mail.from ? [mailbox(mail.from)] : [],
      to: mail.to.map(mailbox),
      cc: mail.cc.map(mailbox),
      replyTo: mail.replyTo ? [mailbox(mail.replyTo)] : [],
      // Text made from HTML is not compared: each reader makes its own.
      text: bodies.text.some(({ contentType }) => contentType !== 'text/html') ? mail.text : null,
      attachments: mail.attachments.map((attachment) => {
        const filename = isMadeUp(attachment.filename) ? null : attachment.filename
        return { ...attachment, filename, content: decodeSpan(raw, attachment.span) }
      }),
    })
  },
  close() {},
}

const isMadeUp = (filename: string) => /^attachment-\d+\.[a-z0-9]+$/.test(filename)

interface MailparserMail {
  subject?: string
  date?: Date
  messageId?: string
  inReplyTo?: string
  references?: string | string[]
  from?: { value: MailparserAddress[] }
  to?: MailparserAddresses
  cc?: MailparserAddresses
  replyTo?: MailparserAddresses
  text?: string
  html?: string | false
  attachments: {
    filename?: string
    contentType: string
    contentDisposition?: string
    contentId?: string
    content: Buffer
  }[]
}
type MailparserAddress = { address?: string; name: string; group?: MailparserAddress[] }
type MailparserAddresses = { value: MailparserAddress[] } | { value: MailparserAddress[] }[]

const { simpleParser } = createRequire(import.meta.url)('mailparser') as {
  simpleParser: (raw: Buffer, options: object) => Promise<MailparserMail>
}

const mailparser: Reader = {
  name: 'mailparser',
  async read(raw) {
    const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, keepCidLinks: true }
    const startedMs = Date.now()
    const mail = await simpleParser(raw, { ...options, keepDeliveryStatus: true }).catch(() => null)
    if (mail === null) return {}
    const { date = null } = mail
    const mailboxes = (field?: MailparserAddresses) =>
      (field === undefined ? [] : [field].flat()).flatMap(({ value }) => flatten(value))
    return readingOf({
      ...mail,
      text: mail.text ?? null,
      // QUIRK: mailparser returns the present for a date that it cannot read.
      date: date !== null && date.getTime() >= startedMs ? null : date,
      from: mailboxes(mail.from),
      to: mailboxes(mail.to),
      cc: mailboxes(mail.cc),
      replyTo: mailboxes(mail.replyTo),
      html: mail.html || null,
      attachments: mail.attachments.map((attachment) => ({
        filename: attachment.filename ?? null,
        contentType: attachment.contentType,
        disposition: attachment.contentDisposition ?? null,
        contentId: attachment.contentId ?? null,
        content: attachment.content,
      })),
    })
  },
  close() {},
}

/** Puts the mailboxes of groups among the others. */
function flatten(list: (MailparserAddress | Address)[]): FoundMailbox[] {
  return list.flatMap(({ address, name, group }) =>
    group ? flatten(group) : [{ email: address ?? '', name }],
  )
}

const postalMime: Reader = {
  name: 'postal-mime',
  async read(raw) {
    const options = { attachmentEncoding: 'arraybuffer', forceRfc822Attachments: true } as const
    const mail = await PostalMime.parse(raw, options).catch(() => null)
    if (mail === null) return {}
    const { date, from, to = [], cc = [], replyTo = [], ...others } = mail
    return readingOf({
      ...others,
      text: mail.text ?? null,
      html: mail.html ?? null,
      date: date === undefined || !isoDate.test(date) ? null : new Date(date),
      from: from ? flatten([from]) : [],
      to: flatten(to),
      cc: flatten(cc),
      replyTo: flatten(replyTo),
      attachments: mail.attachments.map(({ filename, mimeType, disposition, contentId, content }) => ({
        filename,
        contentType: mimeType,
        disposition,
        contentId: contentId ?? null,
        content: Buffer.from(content as ArrayBuffer),
      })),
    })
  },
  close() {},
}

/** QUIRK: postal-mime returns a date that it cannot read unchanged. */
const isoDate = /^\d{4}-\d\d-\d\dT/

type Attempt<Value> = { value: Value } | { fault: string }
type PythonReading = Record<keyof Found, Attempt<unknown>>

/** One Python process that writes one line for each line it reads, in order. */
class PythonReader implements Reader {
  readonly name = "Python's email"
  readonly #child: ChildProcessWithoutNullStreams
  readonly #answers: AsyncIterator<string>

  constructor() {
    this.#child = spawn('python3', [`${import.meta.dirname}/python-reading.py`])
    this.#child.stderr.pipe(process.stderr)
    this.#answers = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async read(raw: Buffer): Promise<Reading> {
    this.#child.stdin.write(`${raw.toString('base64')}\n`)
    const { value: answer, done } = await this.#answers.next()
    if (done) throw new Error('Python has ended')
    const read: PythonReading = JSON.parse(answer)
    const of = <Value>(name: keyof Found) => {
      const attempt = read[name] as Attempt<Value>
      return 'value' in attempt ? attempt.value : undefined
    }
    const seconds = of<number | null>('date')
    return readingOf({
      from: of('from'),
      to: of('to'),
      cc: of('cc'),
      replyTo: of('replyTo'),
      subject: of('subject'),
      date: seconds == null ? seconds : new Date(seconds * 1000),
      messageId: of('messageId'),
      inReplyTo: of('inReplyTo'),
      references: of('references'),
      text: of<string[]>('text')?.join('\n'),
      html: of<string[]>('html')?.join('\n'),
      attachments: of<(Omit<FoundAttachment, 'content'> & { content: string })[]>('attachments')?.map(
        (one) => ({
          ...one,
          content: Buffer.from(one.content, 'base64'),
        }),
      ),
    })
  }

  close(): void {
    this.#child.stdin.end()
  }
}

function readingOf(found: Found): Reading {
  const attachments = found.attachments
  const each = (value: (attachment: FoundAttachment) => unknown) =>
    attachments?.length ? JSON.stringify(attachments.map(value)) : undefined
  const reading: Record<Field, string | undefined> = {
    // One sender and one reply address, because the service has only one of each.
    from: found.from && mailboxesOf(found.from.slice(0, 1)),
    to: found.to && mailboxesOf(found.to),
    cc: found.cc && mailboxesOf(found.cc),
    replyTo: found.replyTo && mailboxesOf(found.replyTo.slice(0, 1)),
    subject: words(found.subject),
    date: found.date === undefined ? undefined : (found.date?.toISOString() ?? ''),
    messageId: idsOf(found.messageId),
    inReplyTo: idsOf(found.inReplyTo),
    references: idsOf(found.references),
    text: words(found.text),
    html: words(found.html?.replace(/<[^>]*>/g, ' ') ?? found.html),
    attachments: attachments && String(attachments.length),
    filename: each(({ filename }) => filename ?? null),
    type: each(({ contentType }) => contentType),
    size: each((attachment) => plainContent(attachment).length),
    sha256: each((attachment) => createHash('sha256').update(plainContent(attachment)).digest('hex')),
    // The parsers return no disposition for a part without one. Ours derives it from whether other parts can refer to it.
    disposition: each(({ disposition, contentId }) => disposition || (contentId ? 'inline' : 'attachment')),
    contentId: each(({ contentId }) => contentId?.replace(/^<|>$/g, '') ?? null),
  }
  return Object.fromEntries(Object.entries(reading).filter(([, value]) => value !== undefined))
}

function mailboxesOf(mailboxes: FoundMailbox[]): string {
  return JSON.stringify(mailboxes.map(({ email, name }) => [email, words(name)]))
}

function words(text: string | null | undefined): string | undefined {
  return text === undefined ? undefined : (text ?? '').replace(/\s+/g, ' ').trim()
}

/** Ids are compared as a list, with or without their angle brackets. */
function idsOf(found: string | string[] | null | undefined): string | undefined {
  return found === undefined
    ? undefined
    : [found ?? '']
        .flat()
        .join(' ')
        .replace(/[<>\s]+/g, ' ')
        .trim()
}

/** QUIRK: postal-mime gives text with LF, and without its last line end. */
function plainContent({ contentType, content }: FoundAttachment): Buffer {
  if (!/^(?:text|message|multipart)\//.test(contentType)) return content
  return Buffer.from(content.toString('latin1').replaceAll('\r', '').replace(/\n+$/, ''), 'latin1')
}
