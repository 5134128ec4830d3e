// Reads mail in worker threads, so that no mail can stop the service or another mail.
import { open } from 'node:fs/promises'
import { ThreadPool, type TimeLimit } from '../base/thread-pool.ts'
import type { Report, ReportAddress } from './bounce/report.ts'
import type { MailBytes, ParseAnswer, ParseRequest, ReadMail } from './parse-worker.ts'
import { ChangedFile, checkSize } from './read/file-bytes.ts'
import { type ParsedMail, plainTextView } from './read/parse.ts'
import type { SafeHtml } from './read/shown-html.ts'
import type { SearchedMail } from './read/words.ts'

export interface ParsePoolOptions {
  threads: number
  /** Time limit for one mail. A thread that exceeds it is ended and replaced. */
  timeoutMs: number
}

const maxHeapMb = 512
/** Bytes of a file that are read to show it as text: a header of 1 MiB, and the shown part of the body. */
const maxView = (1 << 20) + (1 << 18)

type Outcome = Exclude<ParseAnswer, { changed: string } | { unreadable: string }>

/** The thread failed on one of these mails, and would fail again. */
export class NoWords extends Error {}

/** The mail would exceed the time limit that came with it, or was no longer wanted. */
export class ParseTimedOut extends Error {}

/** The file of a mail cannot be read, which is no fault of the mail. `code` is the system's error code. */
export class NoBytes extends Error {
  readonly code: string | undefined

  constructor(message: string, code: string | undefined) {
    super(message)
    this.code = code
  }
}

/** The caller bounds its open requests. Threads start with the first mail and keep no process alive. */
export class ParsePool {
  readonly #pool: ThreadPool<ParseRequest, ParseAnswer>
  readonly #timeoutMs: number

  constructor({ threads, timeoutMs }: ParsePoolOptions) {
    const script = new URL('./parse-worker.ts', import.meta.url)
    this.#pool = new ThreadPool({ script, what: 'read mail', threads, heapMb: maxHeapMb, pack })
    this.#timeoutMs = timeoutMs
  }

  /**
   * Reads `raw`, which is copied. Never rejects because of the mail's content: mail that cannot be read comes as text
   * with a note. Rejects with:
   * - `NoThread` after `close`, or if threads do not start,
   * - `NoBytes` if the file cannot be read,
   * - `ChangedFile` if the file differs from what was written,
   * - `ParseTimedOut` if `timeLimit` was given and is exceeded.
   */
  async parse(raw: MailBytes, timeLimit?: TimeLimit): Promise<ReadMail> {
    const outcome = await this.#run({ kind: 'parse', raw }, timeLimit)
    if ('mail' in outcome) return outcome.mail
    const fault = 'fault' in outcome ? outcome.fault : 'no answer'
    return await viewAsText(raw, `shown as plain text, for it could not be read: ${fault}`)
  }

  /** The report in the mail, or null if it is no report. Rejects if the mail is unreadable, for now or permanently. */
  async report(raw: MailBytes, sentTo?: ReportAddress, timeLimit?: TimeLimit): Promise<Report | null> {
    const outcome = await this.#run({ kind: 'report', raw, sentTo }, timeLimit)
    if (!('report' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.report
  }

  /** The words of each mail in tsvector syntax. Rejects with `NoWords` if a mail fails, or as `parse` does. */
  async words(mails: SearchedMail[]): Promise<string[]> {
    const outcome = await this.#run({ kind: 'words', mails })
    if (!('vectors' in outcome)) throw new NoWords('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.vectors
  }

  /** The text of the HTML. Rejects if it cannot be read, for now or permanently. */
  async textOf(html: string): Promise<string> {
    const outcome = await this.#run({ kind: 'text', html })
    if (!('text' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.text
  }

  /** The HTML in a form that is safe in a browser. Rejects if it cannot be made, for now or permanently. */
  async pageOf(html: string): Promise<SafeHtml> {
    const outcome = await this.#run({ kind: 'page', html })
    if (!('page' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.page
  }

  /** Ends the threads. Open requests reject. */
  async close(): Promise<void> {
    await this.#pool.close()
  }

  async #run(request: ParseRequest, given?: TimeLimit): Promise<Outcome> {
    const timeLimit = given ?? { timeoutMs: this.#timeoutMs, isWanted: () => true }
    const outcome = await this.#pool.run(request, timeLimit)
    if (outcome !== 'late') {
      if ('changed' in outcome) throw new ChangedFile(outcome.changed)
      if ('unreadable' in outcome) throw new NoBytes(outcome.unreadable, outcome.code)
      return outcome
    }
    if (given) throw new ParseTimedOut(`it takes more than ${given.timeoutMs} ms`)
    return { fault: `it took more than ${timeLimit.timeoutMs} ms` }
  }
}

function pack(request: ParseRequest) {
  if (!('raw' in request) || 'path' in request.raw) return { message: request, transfer: [] }
  // Posting a view would copy all of its underlying memory, so only its own bytes are sent.
  const raw = new Uint8Array(request.raw)
  return { message: { ...request, raw }, transfer: [raw.buffer] }
}

/** The mail as plain text, made without a thread. Rejects as `parse` does if its file cannot be read. */
export async function viewAsText(raw: MailBytes, note: string): Promise<ParsedMail> {
  return plainTextView(raw instanceof Uint8Array ? raw : await readStart(raw).catch(failAsBytes), note)
}

function failAsBytes(error: NodeJS.ErrnoException): never {
  throw error.syscall === undefined ? error : new NoBytes(String(error), error.code)
}

async function readStart({ path, sizeBytes }: { path: string; sizeBytes: number }): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    checkSize((await file.stat()).size, sizeBytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxView), 0, maxView, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
