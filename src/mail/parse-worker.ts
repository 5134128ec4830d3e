// The thread in which mail is read: one request in, one answer out, in order.
import { parentPort } from 'node:worker_threads'
import { attachmentBytes, type ParsedMail, parseMail } from './parse.ts'

export type ParseRequest =
  | { kind: 'parse'; raw: Uint8Array }
  | { kind: 'attachment'; raw: Uint8Array; number: number }
/** `ready` comes once, before the answers: what is late from then on is late because of a mail. */
export type ParseAnswer = 'ready' | { mail: ParsedMail } | { content: Uint8Array | null } | { fault: string }

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
  const bytes = attachmentBytes(request.raw, request.number)
  const content = bytes === null ? null : new Uint8Array(bytes)
  port?.postMessage({ content } satisfies ParseAnswer, content === null ? [] : [content.buffer])
}
