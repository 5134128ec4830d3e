// Runs work outside the main thread: threads of one script, each with a queue and a time limit per request.
import { type TransferListItem, Worker } from 'node:worker_threads'

/**
 * The script posts `ready` once. It then answers each request in order with an object: an answer, or a `PoolFault` if the
 * request failed.
 */
export interface ThreadPoolOptions<Request> {
  script: URL
  /** The threads' work, for error messages: `read mail`. */
  what: string
  threads: number
  heapMb: number
  /** A thread that was idle for this long is ended, which frees its memory. If absent, threads are kept. */
  idleMs?: number
  /** Returns the message to post for a request, and the buffers to transfer instead of copying. */
  pack: (request: Request) => { message: unknown; transfer: TransferListItem[] }
}

export interface PoolFault {
  fault: string
}

/** Requests sent ahead to a thread, so that it never waits for the next. */
const maxAhead = 8
/** A request's time is counted in this many steps, so that time in which the whole process was stopped counts little. */
const steps = 10

/**
 * Heap for new objects. Measured over six mails of 5.7 MB in HTML that grows: the process holds 105 MB more; with V8's
 * default 260 MB more. Mail of 30 KB is read as fast.
 */
const youngHeapMb = 16

/** How long a request may take, and whether the caller still wants it when it is about to run. */
export interface TimeLimit {
  timeoutMs: number
  isWanted(): boolean
}

interface Job<Request, Answer> {
  request: Request
  timeLimit: TimeLimit
  settle: (outcome: Answer | PoolFault | 'late') => void
  /** For errors that the request did not cause: the caller tries again later. */
  fail: (error: Error) => void
}

/** No thread can work, through no fault of any request. */
export class NoThread extends Error {}

/** Callers must limit their open requests. Threads start with the first request and keep no process alive. */
export class ThreadPool<Request, Answer extends object> {
  readonly #threads: Thread<Request, Answer>[]

  constructor(options: ThreadPoolOptions<Request>) {
    this.#threads = Array.from({ length: Math.max(1, options.threads) }, () => new Thread(options))
  }

  /**
   * Returns the thread's answer. `late` if it takes longer than `timeoutMs`, or if the caller no longer wants it. A fault if
   * the thread ended during the request. Rejects with `NoThread` after `close`, or if threads do not start.
   */
  run(request: Request, timeLimit: TimeLimit): Promise<Answer | PoolFault | 'late'> {
    const thread = this.#threads.reduce(idlerOf)
    return new Promise((settle, fail) => thread.run({ request, timeLimit, settle, fail }))
  }

  /** Ends the threads. Open requests reject. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }
}

function idlerOf<One extends { openCount: number }>(one: One, other: One): One {
  return other.openCount < one.openCount ? other : one
}

/** One worker thread and its requests. It answers in order, so it is working on the first open request. */
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
        // The system cannot start a thread now, or has no memory for it.
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
    worker.on('message', (answer: Answer | PoolFault | 'ready') => this.#receive(worker, answer))
    worker.on('error', (error) => this.#replace(worker, { fault: String(error) }))
    worker.on('exit', () => this.#replace(worker, { fault: 'the thread ended' }))
    this.#worker = worker
    return worker
  }

  #receive(worker: Worker, answer: Answer | PoolFault | 'ready'): void {
    if (worker !== this.#worker) return
    if (answer === 'ready') this.#isReady = true
    else this.#sent.shift()?.settle(answer)
    this.#watch()
    this.#send()
  }

  /** Gives up on the first open request and continues with the others in a new thread. */
  #replace(worker: Worker, fault: PoolFault | 'late'): void {
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
    // Later, because a caller that learns of the first result may no longer want the others.
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
   * Gives up on the running request after `leftMs`. A late step counts as two steps at most: the request did not cause a
   * stopped process or a sleeping machine.
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
