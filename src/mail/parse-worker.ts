// The thread in which mail is read: one request in, one answer out, in order.
import { parentPort } from 'node:worker_threads'
import { type AttachmentContent, attachmentContents, type ParsedMail, parseMail } from './parse.ts'
import { type Report, readReport } from './report.ts'
import { type SearchedMail, writeVector } from './words.ts'

export type ParseRequest =
  | { kind: 'parse' | 'attachments' | 'report'; raw: Uint8Array }
  | { kind: 'words'; mails: SearchedMail[] }
/** `ready` comes once, before the answers: what is late from then on is late because of a mail. */
export type ParseAnswer =
  | 'ready'
  | { mail: ParsedMail }
  | { contents: PassedContent[] }
  | { report: Report | null }
  | { vectors: string[] }
  | { fault: string }

/** A content as it passes between threads, which makes a plain array of a Buffer. */
type PassedContent = Omit<AttachmentContent, 'bytes'> & { bytes: Uint8Array<ArrayBuffer> }

const port = parentPort
port?.on('message', (request: ParseRequest) => {
  try {
    answer(request)
  } catch (error) {
    // A fault of the reader must not cost the other mails in the queue: the pool gives this one as plain text.
    port.postMessage({ fault: String(error) } satisfies ParseAnswer)
  }
})
port?.postMessage('ready' satisfies ParseAnswer)

function answer(request: ParseRequest): void {
  if (request.kind === 'parse') {
    port?.postMessage({ mail: parseMail(request.raw) } satisfies ParseAnswer)
    return
  }
  if (request.kind === 'report') {
    port?.postMessage({ report: readReport(request.raw) } satisfies ParseAnswer)
    return
  }
  if (request.kind === 'words') {
    port?.postMessage({ vectors: request.mails.map(writeVector) } satisfies ParseAnswer)
    return
  }
  const contents = attachmentContents(request.raw).map((content) => ({
    ...content,
    bytes: new Uint8Array(content.bytes),
  }))
  const moved = contents.map(({ bytes }) => bytes.buffer)
  port?.postMessage({ contents } satisfies ParseAnswer, moved)
}
