// The worker thread that reads mail and answers each request in order.
import { parentPort } from 'node:worker_threads'
import { type Report, type ReportAddress, readReport } from './bounce/report.ts'
import type { Bytes } from './read/bytes.ts'
import { ChangedFile, FileBytes } from './read/file-bytes.ts'
import { htmlToText } from './read/html-text.ts'
import { type ParsedMail, parseMail } from './read/parse.ts'
import { withoutMargins } from './read/quote.ts'
import { safeHtml } from './read/safe-html.ts'
import type { SafeHtml } from './read/shown-html.ts'
import { type SearchedMail, writeVector } from './read/words.ts'

/** A mail in memory or in a file. */
export type MailBytes = Uint8Array | { path: string; sizeBytes: number }
type ReadRequest =
  | { kind: 'parse'; raw: MailBytes }
  | { kind: 'report'; raw: MailBytes; sentTo: ReportAddress | undefined }
export type ParseRequest =
  | ReadRequest
  | { kind: 'words'; mails: SearchedMail[] }
  | { kind: 'text'; html: string }
  | { kind: 'page'; html: string }
/** A mail as the thread returns it. A long text is sent as UTF-8, because its memory moves, while a string is copied. */
export type ReadMail = Omit<ParsedMail, 'text' | 'html' | 'extractedText'> & {
  text: string | Uint8Array<ArrayBuffer>
  html: string | Uint8Array<ArrayBuffer> | null
  /** Null if it equals the text without surrounding white space. */
  extractedText: string | null
}
export type ParseAnswer =
  | { mail: ReadMail }
  | { report: Report | null }
  | { vectors: string[] }
  | { text: string }
  | { page: SafeHtml }
  | { fault: string }
  /** The mail's file differs from what was written. */
  | { changed: string }
  /** The mail's file could not be read, which says nothing about the mail. `code` is the system's. */
  | { unreadable: string; code: string | undefined }

/** From this length on, moving bytes is cheaper. A string is copied twice and stays in the heap until its mail is filed. */
const longText = 8 * 1024
const encoder = new TextEncoder()

const port = parentPort
port?.on('message', (request: ParseRequest) => {
  try {
    post(answer(request))
  } catch (error) {
    post(answerFault(error))
  }
})
// After this message, a late answer is late because of a mail.
port?.postMessage('ready')

function post(result: ParseAnswer): void {
  const texts = 'mail' in result ? [result.mail.text, result.mail.html] : []
  port!.postMessage(
    result,
    texts.flatMap((text) => (text instanceof Uint8Array ? text.buffer : [])),
  )
}

function answerFault(error: unknown): ParseAnswer {
  if (error instanceof ChangedFile) return { changed: error.message }
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall !== undefined) return { unreadable: String(error), code }
  // A bug in the reader must not affect other mails in the queue. The pool returns this mail as plain text.
  return { fault: String(error) }
}

function answer(request: ParseRequest): ParseAnswer {
  if (request.kind === 'words') return { vectors: request.mails.map(writeVector) }
  if (request.kind === 'text') return { text: htmlToText(request.html) }
  if (request.kind === 'page') return { page: safeHtml(request.html) }
  const { raw } = request
  if (raw instanceof Uint8Array) return read(request, raw)
  const file = new FileBytes(raw.path, raw.sizeBytes)
  try {
    return read(request, file)
  } finally {
    file.close()
  }
}

function read(request: ReadRequest, bytes: Uint8Array | Bytes): ParseAnswer {
  if (request.kind === 'parse') return { mail: packed(parseMail(bytes)) }
  return { report: readReport(bytes, request.sentTo) }
}

function packed(mail: ParsedMail): ReadMail {
  const { text, html, extractedText } = mail
  return {
    ...mail,
    text: packedText(text),
    html: html === null ? null : packedText(html),
    extractedText: extractedText === withoutMargins(text) ? null : extractedText,
  }
}

function packedText(text: string): string | Uint8Array<ArrayBuffer> {
  return text.length > longText ? encoder.encode(text) : text
}
