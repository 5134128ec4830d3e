// Reads mail in worker threads, so that no mail stops the service or another mail, whatever is in it.
import { Worker } from 'node:worker_threads'
import { type AttachmentContent, type ParsedMail, plainTextView } from './parse.ts'
import type { ParseAnswer, ParseRequest } from './parse-worker.ts'
import type { Report } from './report.ts'
import type { SearchedMail } from './words.ts'

export interface ParsePoolOptions {
  threads: number
  /** How long one mail may take. Its thread is then ended and replaced. */
  timeoutMs: number
}

/** Requests sent ahead to a thread, so that it never waits for the next one. */
const mostAhead = 8
const mostHeapMb = 512
/** In how many steps the time of a mail is counted, so that time in which the whole process stood still counts little. */
const steps = 10

type Outcome = Exclude<ParseAnswer, 'ready'>

interface Job {
  request: ParseRequest
  settle: (outcome: Outcome) => void
  /** For what is no fault of the mail: the caller tries again later. */
  fail: (error: Error) => void
}

/** Over one of these mails the thread has failed, and would again. */
export class NoWords extends Error {}

/** There is no thread to read with: no fault of any mail. */
export class NoThread extends Error {}

/** The caller bounds how many requests it has open. Threads start with the first mail and keep no process alive. */
export class ParsePool {
  readonly #threads: ParseThread[]

  constructor({ threads, timeoutMs }: ParsePoolOptions) {
    this.#threads = Array.from({ length: Math.max(1, threads) }, () => new ParseThread(timeoutMs))
  }

  /**
   * Reads `raw`, which is copied. Never rejects for what is in it: mail that cannot be read comes as text with a note.
   * Rejects with `NoThread` where none could read it: after `close`, or where threads do not start.
   */
  async parse(raw: Uint8Array): Promise<ParsedMail> {
    const outcome = await this.#run({ kind: 'parse', raw })
    if ('mail' in outcome) return outcome.mail
    const fault = 'fault' in outcome ? outcome.fault : 'no answer'
    return plainTextView(raw, `shown as plain text, for it could not be read: ${fault}`)
  }

  /**
   * The contents of the attachments that `parse` gives, in their order. Rejects where the mail cannot be read, or not
   * now.
   */
  async attachmentContents(raw: Uint8Array): Promise<AttachmentContent[]> {
    const outcome = await this.#run({ kind: 'attachments', raw })
    if (!('contents' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.contents.map(({ bytes, ...content }) => ({ ...content, bytes: Buffer.from(bytes.buffer) }))
  }

  /** What the mail reports; null where it is no report. Rejects where it cannot be read, or not now. */
  async report(raw: Uint8Array): Promise<Report | null> {
    const outcome = await this.#run({ kind: 'report', raw })
    if (!('report' in outcome)) throw new Error('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.report
  }

  /** The words of each mail as a tsvector is written. Rejects with `NoWords` where they cannot be had, or as `parse` does. */
  async words(mails: SearchedMail[]): Promise<string[]> {
    const outcome = await this.#run({ kind: 'words', mails })
    if (!('vectors' in outcome)) throw new NoWords('fault' in outcome ? outcome.fault : 'no answer')
    return outcome.vectors
  }

  /** Ends the threads. What is still open rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #run(request: ParseRequest): Promise<Outcome> {
    const idlest = this.#threads.reduce((best, thread) => (thread.openCount < best.openCount ? thread : best))
    return new Promise((settle, fail) => idlest.run({ request, settle, fail }))
  }
}

/** One worker thread and the requests it has; it answers in order, so the first open one is the one it works on. */
class ParseThread {
  readonly #timeoutMs: number
  #worker: Worker | null = null
  #sent: Job[] = []
  #waiting: Job[] = []
  #timer: NodeJS.Timeout | null = null
  #isReady = false
  #isClosed = false

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

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
    if (request.kind === 'words') worker.postMessage(request)
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
    worker.on('error', (error) => this.#replace(worker, String(error)))
    worker.on('exit', () => this.#replace(worker, 'the thread ended'))
    this.#worker = worker
    return worker
  }

  #receive(worker: Worker, answer: ParseAnswer): void {
    if (worker !== this.#worker) return
    if (answer === 'ready') this.#isReady = true
    else this.#sent.shift()?.settle(answer)
    this.#watch()
    this.#send()
  }

  /** Gives up on the first open request and starts over with the others, in a new thread. */
  #replace(worker: Worker, fault: string): void {
    if (worker !== this.#worker) return
    const [first, ...others] = this.#sent
    const wasReady = this.#isReady
    this.#forgetWorker()
    void worker.terminate()
    this.#waiting.unshift(...others)
    if (wasReady) first?.settle({ fault })
    else first?.fail(new NoThread(`the thread that reads mail did not start: ${fault}`))
    this.#send()
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
      if (this.#isReady) this.#countTime(worker, this.#timeoutMs)
    }
  }

  /**
   * Gives up on the mail that is being read once it has had `leftMs`. A step that came late counts twice at most: a process
   * that was stopped, or a machine that slept, is no fault of the mail.
   */
  #countTime(worker: Worker, leftMs: number): void {
    const stepMs = this.#timeoutMs / steps
    const startedMs = performance.now()
    this.#timer = setTimeout(() => {
      const left = leftMs - Math.min(performance.now() - startedMs, 2 * stepMs)
      if (left > 0) this.#countTime(worker, left)
      else this.#replace(worker, `it took more than ${this.#timeoutMs} ms`)
    }, stepMs)
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
