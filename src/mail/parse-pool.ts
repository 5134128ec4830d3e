// Reads mail in worker threads, so that no mail stops the service or another mail, whatever is in it.
import { open } from 'node:fs/promises'
import { ThreadPool, type TimeLimit } from '../base/thread-pool.ts'
import type { Report, ReportAddress } from './bounce/report.ts'
import type { MailBytes, ParseAnswer, ParseRequest, ReadMail } from './parse-worker.ts'
import { ChangedFile, checkSize } from './read/file-bytes.ts'
import { type ParsedMail, plainTextView } from './read/parse.ts'
import type { SafeHtml } from './read/safe-html.ts'
import type { SearchedMail } from './read/words.ts'

export interface ParsePoolOptions {
  threads: number
  /** How long one mail may take. Its thread is then ended and replaced. */
  timeoutMs: number
}

const maxHeapMb = 512
/** How much of a file is looked at for showing it as text: a header of a megabyte, and what is shown of the body. */
const maxView = (1 << 20) + (1 << 18)

type Outcome = Exclude<ParseAnswer, { changed: string } | { unreadable: string }>

/** Over one of these mails the thread has failed, and would again. */
export class NoWords extends Error {}

/** The mail would take longer than the patience that came with it, or was no longer wanted. */
export class ParseTimedOut extends Error {}

/** The file of a mail cannot be read: no fault of the mail. `code` says why, as the system does. */
export class NoBytes extends Error {
  readonly code: string | undefined

  constructor(message: string, code: string | undefined) {
    super(message)
    this.code = code
  }
}

/** The caller bounds how many requests it has open. Threads start with the first mail and keep no process alive. */
export class ParsePool {
  readonly #pool: ThreadPool<ParseRequest, ParseAnswer>
  readonly #timeoutMs: number

  constructor({ threads, timeoutMs }: ParsePoolOptions) {
    const script = new URL('./parse-worker.ts', import.meta.url)
    this.#pool = new ThreadPool({ script, what: 'read mail', threads, heapMb: maxHeapMb, pack })
    this.#timeoutMs = timeoutMs
  }

  /**
   * Reads `raw`, which is copied. Never rejects for what is in it: mail that cannot be read comes as text with a note.
   * Rejects with `NoThread` where none could read it: after `close`, or where threads do not start; with `NoBytes` where
   * its file cannot be read, `ChangedFile` where it is not what was written; and with `ParseTimedOut` where patience was given.
   */
  async parse(raw: MailBytes, timeLimit?: TimeLimit): Promise<ReadMail> {
    const outcome = await this.#run({ kind: 'parse', raw }, timeLimit)
    if ('mail' in outcome) return outcome.mail
    const fault = 'fault' in outcome ? outcome.fault : 'no answer'
    return await viewAsText(raw, `shown as plain text, for it could not be read: ${fault}`)
  }

  /** What the mail reports; null where it is no report. Rejects where it cannot be read, or not now. */
  async report(raw: MailBytes, sentTo?: ReportAddress, timeLimit?: TimeLimit): Promise<Report | null> {
    const outcome = await this.#run({ kind: 'report', raw, sentTo }, timeLimit)
    if (!('report' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.report
  }

  /** The words of each mail as a tsvector is written. Rejects with `NoWords` where they cannot be had, or as `parse` does. */
  async words(mails: SearchedMail[]): Promise<string[]> {
    const outcome = await this.#run({ kind: 'words', mails })
    if (!('vectors' in outcome)) throw new NoWords('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.vectors
  }

  /** The text of the HTML. Rejects where it cannot be had, or not now. */
  async textOf(html: string): Promise<string> {
    const outcome = await this.#run({ kind: 'text', html })
    if (!('text' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.text
  }

  /** What of the HTML may be shown in a browser. Rejects where it cannot be had, or not now. */
  async pageOf(html: string): Promise<SafeHtml> {
    const outcome = await this.#run({ kind: 'page', html })
    if (!('page' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.page
  }

  /** Ends the threads. What is still open rejects. */
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
  // A view is copied with all the memory it looks into, so only its own bytes go.
  const raw = new Uint8Array(request.raw)
  return { message: { ...request, raw }, transfer: [raw.buffer] }
}

/** The mail as plain text, without asking a thread. Rejects as `parse` does where its file cannot be read. */
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
