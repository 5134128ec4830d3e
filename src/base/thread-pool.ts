// Work beside the main thread: threads of one script, each with a queue, that have so much time for a request and no more.
import { type TransferListItem, Worker } from 'node:worker_threads'

/**
 * The script says `ready` once, and then answers each request in order, with an object: an answer, or a `Fault` where it
 * failed over the request.
 */
export interface ThreadPoolOptions<Request> {
  script: URL
  /** What the threads do, for the words of an error: `read mail`. */
  what: string
  threads: number
  heapMb: number
  /** A thread that has had nothing to do for so long is ended, with the memory it holds; otherwise it is kept. */
  idleMs?: number
  /** What is posted for a request, and which of its memory goes instead of being copied. */
  pack: (request: Request) => { message: unknown; transfer: TransferListItem[] }
}

export interface Fault {
  fault: string
}

/** Requests sent ahead to a thread, so that it never waits for the next one. */
const maxAhead = 8
/** In how many steps the time of a request is counted, so that time in which the whole process stood still counts little. */
const steps = 10

/**
 * Of the heap, for what is new in it. Measured over six mails of 5.7 MB in HTML that grows: the process holds 105 MB more
 * where V8 by itself holds 260; mail of 30 KB is read as fast.
 */
const youngHeapMb = 16

/** How long a request may take, and whether it is still wanted when its turn comes. */
export interface TimeLimit {
  timeoutMs: number
  isWanted(): boolean
}

interface Job<Request, Answer> {
  request: Request
  timeLimit: TimeLimit
  settle: (outcome: Answer | Fault | 'late') => void
  /** For what is no fault of the request: the caller tries again later. */
  fail: (error: Error) => void
}

/** There is no thread to work with: no fault of any request. */
export class NoThread extends Error {}

/** The caller bounds how many requests it has open. Threads start with the first request and keep no process alive. */
export class ThreadPool<Request, Answer extends object> {
  readonly #threads: Thread<Request, Answer>[]

  constructor(options: ThreadPoolOptions<Request>) {
    this.#threads = Array.from({ length: Math.max(1, options.threads) }, () => new Thread(options))
  }

  /**
   * What a thread makes of the request: `late` where that takes longer than there is patience, or is no longer wanted, and
   * a fault where the thread ended over it. Rejects with `NoThread` where none could work on it: after `close`, or where
   * threads do not start.
   */
  run(request: Request, timeLimit: TimeLimit): Promise<Answer | Fault | 'late'> {
    const thread = this.#threads.reduce(idlerOf)
    return new Promise((settle, fail) => thread.run({ request, timeLimit, settle, fail }))
  }

  /** Ends the threads. What is still open rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }
}

function idlerOf<One extends { openCount: number }>(one: One, other: One): One {
  return other.openCount < one.openCount ? other : one
}

/** One worker thread and the requests it has; it answers in order, so the first open one is the one it works on. */
class Thread<Request, Answer extends object> {
  readonly #options: ThreadPoolOptions<Request>
  #worker: Worker | null = null
  #sent: Job<Request, Answer>[] = []
  #waiting: Job<Request, Answer>[] = []
  #timer: NodeJS.Timeout | null = null
  #isReady = false
  #isClosed = false

  constructor(options: ThreadPoolOptions<Request>) {
    this.#options = options
  }

  get openCount(): number {
    return this.#sent.length + this.#waiting.length
  }

  run(job: Job<Request, Answer>): void {
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
    for (const job of open) job.fail(new NoThread(`the threads that ${this.#options.what} are closed`))
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#sent.length < maxAhead) {
      const job = this.#waiting.shift()!
      if (!job.timeLimit.isWanted()) {
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

  #post({ request }: Job<Request, Answer>): void {
    const { message, transfer } = this.#options.pack(request)
    this.#running().postMessage(message, transfer)
  }

  #running(): Worker {
    if (this.#worker !== null) return this.#worker
    const worker = new Worker(this.#options.script, {
      resourceLimits: { maxOldGenerationSizeMb: this.#options.heapMb, maxYoungGenerationSizeMb: youngHeapMb },
    })
    worker.on('message', (answer: Answer | Fault | 'ready') => this.#receive(worker, answer))
    worker.on('error', (error) => this.#replace(worker, { fault: String(error) }))
    worker.on('exit', () => this.#replace(worker, { fault: 'the thread ended' }))
    this.#worker = worker
    return worker
  }

  #receive(worker: Worker, answer: Answer | Fault | 'ready'): void {
    if (worker !== this.#worker) return
    if (answer === 'ready') this.#isReady = true
    else this.#sent.shift()?.settle(answer)
    this.#watch()
    this.#send()
  }

  /** Gives up on the first open request and starts over with the others, in a new thread. */
  #replace(worker: Worker, fault: Fault | 'late'): void {
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
          `a thread to ${this.#options.what} did not start: ${fault === 'late' ? 'it took too long' : fault.fault}`,
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
    if (this.#sent.length === 0) this.#rest(worker)
    else {
      worker.ref()
      const { timeoutMs } = this.#sent[0]!.timeLimit
      if (this.#isReady) this.#countTime(worker, timeoutMs, timeoutMs / steps)
    }
  }

  #rest(worker: Worker): void {
    worker.unref()
    const { idleMs } = this.#options
    if (idleMs === undefined) return
    const end = () => {
      this.#forgetWorker()
      void worker.terminate()
    }
    this.#timer = setTimeout(end, idleMs).unref()
  }

  /**
   * Gives up on the request that is being worked on once it has had `leftMs`. A step that came late counts twice at most: a
   * process that was stopped, or a machine that slept, is no fault of the request.
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
