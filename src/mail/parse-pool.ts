// Reads mail in worker threads, so that no mail stops the service or another mail, whatever is in it.
import { open } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import { ChangedFile, checkSize } from './file-bytes.ts'
import { type ParsedMail, plainTextView } from './parse.ts'
import type { MailBytes, ParseAnswer, ParseRequest } from './parse-worker.ts'
import type { Report, ReportAddress } from './report.ts'
import type { SearchedMail } from './words.ts'

export interface ParsePoolOptions {
  threads: number
  /** How long one mail may take. Its thread is then ended and replaced. */
  timeoutMs: number
}

/** Requests sent ahead to a thread, so that it never waits for the next one. */
const mostAhead = 8
const mostHeapMb = 512
/** How much of a file is looked at for showing it as text: a header of a megabyte, and what is shown of the body. */
const longestView = (1 << 20) + (1 << 18)
/** In how many steps the time of a mail is counted, so that time in which the whole process stood still counts little. */
const steps = 10

type Outcome = Exclude<ParseAnswer, 'ready' | { changed: string } | { unreadable: string }>

/** How long a mail may take, and whether it is still wanted when its turn comes. */
export interface Patience {
  timeoutMs: number
  isWanted(): boolean
}

interface Job {
  request: ParseRequest
  patience: Patience
  settle: (outcome: Outcome | 'late') => void
  /** For what is no fault of the mail: the caller tries again later. */
  fail: (error: Error) => void
}

/** Over one of these mails the thread has failed, and would again. */
export class NoWords extends Error {}

/** The mail would take longer than the patience that came with it, or was no longer wanted. */
export class OutOfPatience extends Error {}

/** There is no thread to read with: no fault of any mail. */
export class NoThread extends Error {}

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
  readonly #threads: ParseThread[]
  readonly #timeoutMs: number

  constructor({ threads, timeoutMs }: ParsePoolOptions) {
    this.#threads = Array.from({ length: Math.max(1, threads) }, () => new ParseThread())
    this.#timeoutMs = timeoutMs
  }

  /**
   * Reads `raw`, which is copied. Never rejects for what is in it: mail that cannot be read comes as text with a note.
   * Rejects with `NoThread` where none could read it: after `close`, or where threads do not start; with `NoBytes` where
   * its file cannot be read, `ChangedFile` where it is not what was written; and with `OutOfPatience` where patience was given.
   */
  async parse(raw: MailBytes, patience?: Patience): Promise<ParsedMail> {
    const outcome = await this.#run({ kind: 'parse', raw }, patience)
    if ('mail' in outcome) return outcome.mail
    const fault = 'fault' in outcome ? outcome.fault : 'no answer'
    return await viewAsText(raw, `shown as plain text, for it could not be read: ${fault}`)
  }

  /** What the mail reports; null where it is no report. Rejects where it cannot be read, or not now. */
  async report(raw: MailBytes, sentTo?: ReportAddress, patience?: Patience): Promise<Report | null> {
    const outcome = await this.#run({ kind: 'report', raw, sentTo }, patience)
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

  /** Ends the threads. What is still open rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  async #run(request: ParseRequest, given?: Patience): Promise<Outcome> {
    const thread = this.#threads.reduce(idlerOf)
    const patience = given ?? { timeoutMs: this.#timeoutMs, isWanted: () => true }
    const outcome = await new Promise<Outcome | 'late'>((settle, fail) =>
      thread.run({ request, patience, settle, fail }),
    )
    if (outcome !== 'late') return outcome
    if (given) throw new OutOfPatience(`it takes more than ${given.timeoutMs} ms`)
    return { fault: `it took more than ${patience.timeoutMs} ms` }
  }
}

function idlerOf(one: ParseThread, other: ParseThread): ParseThread {
  return other.openCount < one.openCount ? other : one
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
    const { buffer, bytesRead } = await file.read(Buffer.alloc(longestView), 0, longestView, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** One worker thread and the requests it has; it answers in order, so the first open one is the one it works on. */
class ParseThread {
  #worker: Worker | null = null
  #sent: Job[] = []
  #waiting: Job[] = []
  #timer: NodeJS.Timeout | null = null
  #isReady = false
  #isClosed = false

  get openCount(): number {
    return this.#sent.length + this.#waiting.length
  }

  run(job: Job): void {
    this.#waiting.push(job)
    if (this.#isClosed) this.#failAll()
    else this.#send()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const worker = this.#worker
    this.#failAll()
    await worker?.terminate()
  }

  #failAll(): void {
    const open = [...this.#sent, ...this.#waiting]
    this.#forgetWorker()
    this.#waiting = []
    for (const job of open) job.fail(new NoThread('the threads that read mail are closed'))
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#sent.length < mostAhead) {
      const job = this.#waiting.shift()!
      if (!job.patience.isWanted()) {
        job.settle('late')
        continue
      }
      try {
        this.#post(job)
      } catch (error) {
        // The system has no thread or no memory for it now.
        job.fail(new NoThread(String(error), { cause: error }))
        continue
      }
      this.#sent.push(job)
      if (this.#sent.length === 1) this.#watch()
    }
  }

  #post({ request }: Job): void {
    const worker = this.#running()
    if (!('raw' in request) || 'path' in request.raw) worker.postMessage(request)
    else {
      // A view is copied with all the memory it looks into, so only its own bytes go.
      const raw = new Uint8Array(request.raw)
      worker.postMessage({ ...request, raw }, [raw.buffer])
    }
  }

  #running(): Worker {
    if (this.#worker !== null) return this.#worker
    const worker = new Worker(new URL('./parse-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: mostHeapMb },
    })
    worker.on('message', (answer: ParseAnswer) => this.#receive(worker, answer))
    worker.on('error', (error) => this.#replace(worker, { fault: String(error) }))
    worker.on('exit', () => this.#replace(worker, { fault: 'the thread ended' }))
    this.#worker = worker
    return worker
  }

  #receive(worker: Worker, answer: ParseAnswer): void {
    if (worker !== this.#worker) return
    if (answer === 'ready') this.#isReady = true
    else if ('changed' in answer) this.#sent.shift()?.fail(new ChangedFile(answer.changed))
    else if ('unreadable' in answer) this.#sent.shift()?.fail(new NoBytes(answer.unreadable, answer.code))
    else this.#sent.shift()?.settle(answer)
    this.#watch()
    this.#send()
  }

  /** Gives up on the first open request and starts over with the others, in a new thread. */
  #replace(worker: Worker, fault: { fault: string } | 'late'): void {
    if (worker !== this.#worker) return
    const [first, ...others] = this.#sent
    const wasReady = this.#isReady
    this.#forgetWorker()
    void worker.terminate()
    this.#waiting.unshift(...others)
    if (wasReady) first?.settle(fault)
    else
      first?.fail(
        new NoThread(
          `the thread that reads mail did not start: ${fault === 'late' ? 'it took too long' : fault.fault}`,
        ),
      )
    // Later, for who hears of the first may no longer want the others.
    setImmediate(() => this.#send())
  }

  #forgetWorker(): void {
    this.#stopTimer()
    this.#worker = null
    this.#isReady = false
    this.#sent = []
  }

  #watch(): void {
    this.#stopTimer()
    const worker = this.#worker
    if (worker === null) return
    if (this.#sent.length === 0) worker.unref()
    else {
      worker.ref()
      const { timeoutMs } = this.#sent[0]!.patience
      if (this.#isReady) this.#countTime(worker, timeoutMs, timeoutMs / steps)
    }
  }

  /**
   * Gives up on the mail that is being read once it has had `leftMs`. A step that came late counts twice at most: a process
   * that was stopped, or a machine that slept, is no fault of the mail.
   */
  #countTime(worker: Worker, leftMs: number, stepMs: number): void {
    const startedMs = performance.now()
    this.#timer = setTimeout(() => {
      const left = leftMs - Math.min(performance.now() - startedMs, 2 * stepMs)
      if (left > 0) this.#countTime(worker, left, stepMs)
      else this.#replace(worker, 'late')
    }, stepMs)
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
