// Three independent parsers read a message into one shape: mailparser, postal-mime, Python's email package.
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import PostalMime, { type Address } from 'postal-mime'

export interface ReadMailbox {
  email: string
  name: string
}

export interface ReadAttachment {
  filename: string | null
  contentType: string
  /** Without angle brackets. */
  contentId: string | null
  content: Buffer
}

export interface ReadMail {
  subject: string
  from: ReadMailbox[]
  to: ReadMailbox[]
  cc: ReadMailbox[]
  replyTo: ReadMailbox[]
  /** Line ends are LF. Empty if there is no text. */
  text: string
  html: string
  attachments: ReadAttachment[]
}

export interface MailReader {
  name: string
  read(raw: Buffer): Promise<ReadMail>
  close(): void
}

interface MailparserMail {
  subject?: string
  from?: MailparserAddress
  to?: MailparserAddress
  cc?: MailparserAddress
  replyTo?: MailparserAddress
  text?: string
  html?: string | false
  attachments: { filename?: string; contentType: string; cid?: string; content: Buffer }[]
}
interface MailparserAddress {
  value: { address?: string; name: string }[]
}

const { simpleParser } = createRequire(import.meta.url)('mailparser') as {
  simpleParser: (raw: Buffer, options: object) => Promise<MailparserMail>
}

const mailparser: MailReader = {
  name: 'mailparser',
  async read(raw) {
    const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, keepCidLinks: true }
    const mail = await simpleParser(raw, options)
    const mailboxes = (field?: MailparserAddress) =>
      (field?.value ?? []).map(({ address, name }) => ({ email: address ?? '', name }))
    return {
      subject: mail.subject ?? '',
      from: mailboxes(mail.from),
      to: mailboxes(mail.to),
      cc: mailboxes(mail.cc),
      replyTo: mailboxes(mail.replyTo),
      text: lineFeeds(mail.text),
      html: lineFeeds(mail.html || undefined),
      attachments: mail.attachments.map(({ filename, contentType, cid, content }) => ({
        filename: filename ?? null,
        contentType,
        contentId: cid ?? null,
        content,
      })),
    }
  },
  close() {},
}

const postalMime: MailReader = {
  name: 'postal-mime',
  async read(raw) {
    const mail = await PostalMime.parse(raw, { attachmentEncoding: 'arraybuffer' })
    const mailboxes = (list: Address[] = []) =>
      list.map(({ address, name }) => ({ email: quoteAgain(address ?? ''), name }))
    return {
      subject: mail.subject ?? '',
      from: mailboxes(mail.from ? [mail.from] : []),
      to: mailboxes(mail.to),
      cc: mailboxes(mail.cc),
      replyTo: mailboxes(mail.replyTo),
      text: lineFeeds(mail.text),
      html: lineFeeds(mail.html),
      attachments: mail.attachments.map(({ filename, mimeType, contentId, content }) => ({
        filename,
        contentType: mimeType,
        contentId: contentId?.replace(/^<|>$/g, '') ?? null,
        content: Buffer.from(content as ArrayBuffer),
      })),
    }
  },
  close() {},
}

/** QUIRK: postal-mime removes the quotes from a local part that needs them. */
function quoteAgain(address: string): string {
  return address.replace(/^([^"].* .*)@/, '"$1"@')
}

interface PythonMail extends Omit<ReadMail, 'text' | 'html' | 'attachments'> {
  texts: Record<string, string>
  attachments: (Omit<ReadAttachment, 'content'> & { content: string })[]
  defects: string[]
}

/** One Python process that writes one line for each line it reads, in order. */
class PythonReader implements MailReader {
  readonly name = "Python's email"
  readonly #child: ChildProcessWithoutNullStreams
  readonly #answers: AsyncIterator<string>

  constructor() {
    this.#child = spawn('python3', [`${import.meta.dirname}/python-mail.py`])
    this.#child.stderr.pipe(process.stderr)
    this.#answers = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async read(raw: Buffer): Promise<ReadMail> {
    this.#child.stdin.write(`${raw.toString('base64')}\n`)
    const { value: answer, done } = await this.#answers.next()
    if (done) throw new Error('Python could not read the message')
    const { texts, attachments, defects, ...mail }: PythonMail = JSON.parse(answer)
    if (defects.length > 0) throw new Error(`Python found defects: ${defects.join(', ')}`)
    return {
      ...mail,
      text: lineFeeds(texts['text/plain']),
      html: lineFeeds(texts['text/html']),
      attachments: attachments.map((one) => ({
        ...one,
        contentId: one.contentId?.replace(/^<|>$/g, '') ?? null,
        content: Buffer.from(one.content, 'base64'),
      })),
    }
  }

  close(): void {
    this.#child.stdin.end()
  }
}

/** The readers of this machine. A missing Python is reported, and under CI it is a failure. */
export function openReaders(): MailReader[] {
  if (spawnSync('python3', ['--version']).status === 0) return [mailparser, postalMime, new PythonReader()]
  if (process.env.CI) throw new Error('python3 is missing')
  console.log('python3 is missing: messages are judged by two parsers instead of three')
  return [mailparser, postalMime]
}

function lineFeeds(text = ''): string {
  return text.replaceAll('\r\n', '\n')
}
