// The thread in which mail is read: one request in, one answer out, in order.
import { parentPort } from 'node:worker_threads'
import { type Report, type ReportAddress, readReport } from './bounce/report.ts'
import type { Bytes } from './read/bytes.ts'
import { ChangedFile, FileBytes } from './read/file-bytes.ts'
import { htmlToText } from './read/html-text.ts'
import { type ParsedMail, parseMail } from './read/parse.ts'
import { type SearchedMail, writeVector } from './read/words.ts'

/** A mail in memory, or the file in which it stands. */
export type MailBytes = Uint8Array | { path: string; sizeBytes: number }
type ReadRequest =
  | { kind: 'parse'; raw: MailBytes }
  | { kind: 'report'; raw: MailBytes; sentTo: ReportAddress | undefined }
export type ParseRequest =
  | ReadRequest
  | { kind: 'words'; mails: SearchedMail[] }
  | { kind: 'text'; html: string }
export type ParseAnswer =
  | { mail: ParsedMail }
  | { report: Report | null }
  | { vectors: string[] }
  | { text: string }
  | { fault: string }
  /** The mail's file is not what was written. */
  | { changed: string }
  /** The mail's file could not be read, which says nothing of the mail; `code` is the system's. */
  | { unreadable: string; code: string | undefined }

const port = parentPort
port?.on('message', (request: ParseRequest) => {
  try {
    port.postMessage(answer(request))
  } catch (error) {
    port.postMessage(answerFault(error))
  }
})
// What is late from then on is late because of a mail.
port?.postMessage('ready')

function answerFault(error: unknown): ParseAnswer {
  if (error instanceof ChangedFile) return { changed: error.message }
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall !== undefined) return { unreadable: String(error), code }
  // A fault of the reader must not cost the other mails in the queue: the pool gives this one as plain text.
  return { fault: String(error) }
}

function answer(request: ParseRequest): ParseAnswer {
  if (request.kind === 'words') return { vectors: request.mails.map(writeVector) }
  if (request.kind === 'text') return { text: htmlToText(request.html) }
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
  if (request.kind === 'parse') return { mail: parseMail(bytes) }
  return { report: readReport(bytes, request.sentTo) }
}
