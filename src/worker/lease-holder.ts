// Acquires, checks and releases this node's leases on rows. A row is a destination queue or an endpoint.
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { OutageLog } from '../base/outage-log.ts'
import { type Db, isLost } from '../postgres/db.ts'
import type { Asker, Lease, Leases } from '../store/leases.ts'
import { debounceMs, Loop } from './loop.ts'
import type { Membership } from './membership.ts'

/** The work under one lease. */
export interface LeaseWorker<Row extends Lease> {
  /** Resolves when the work has ended and every result is recorded or given up. The lease is released only then. */
  run(): Promise<void>
  /** Whether a wake-up came after its last poll for work. */
  readonly isWoken: boolean
  /** Wakes the worker, because there may be work. */
  wake(): void
  /** Applies changes that others made to the row. Called with the current row at each check of the lease. */
  apply?(row: Row): void
  /** Takes no new work. Work under way ends normally. */
  stop(): void
  /** Ends everything at once, because the lease is lost or no time is left. */
  cut(): void
}

/** The terms of a worker's lease. */
export interface LeaseTerms {
  clock: Clock
  log: Log
  /** Becomes false before another node can have the row. Then nothing new may begin, and no message may be finished. */
  mayFinish(): boolean
  /** How long the worker may live without work. */
  idleMs: number
  /** The worker calls this when it gives up a slot, so that another row can be acquired. */
  onRoom(): void
}

export type Workers<Worker> = ReadonlyMap<string, { readonly worker: Worker }>

export interface Search<Worker> {
  db: Db
  asker: Asker
  at: Date
  /** Keys that are known to have work. The search removes each key that it has looked up. */
  hinted: Set<string>
  /** Whether to search for all rows with work, because some work is due. */
  isPoll: boolean
  held: Workers<Worker>
}

/** The kind of row that is owned: how rows are found and chosen, and which worker serves them. */
export interface LeaseSource<Row extends Lease, Worker extends LeaseWorker<Row>> {
  leases: Leases<Row>
  /** Returns the keys to acquire now. */
  find(search: Search<Worker>): Promise<string[]>
  /** Whether the last search left out rows that can be found and acquired now. */
  hasMore(held: Workers<Worker>): boolean
  createWorker(row: Row, terms: LeaseTerms): Worker
}

export interface LeaseHolderOptions<Row extends Lease, Worker extends LeaseWorker<Row>> {
  db: Db
  clock: Clock
  log: Log
  membership: Membership
  source: LeaseSource<Row, Worker>
}

interface Held<Worker> {
  epoch: number
  worker: Worker
  ended: Promise<void>
}

const checkIntervalMs = 3_000
const idleMs = 1_000

/**
 * The life of a lease. A row with work is *found* by a hint, or by a poll of all rows if some work is due. It is
 * *acquired* under a new epoch, which fences its former owner. Its worker runs while the lease is *held*, checked every
 * three seconds. The lease is *released* once the worker has ended by itself, with all results recorded. If a hint came
 * after the worker's last poll, the row is searched for again. The lease is *lost* if a check does not return it, or if
 * this node is considered dead. Then the worker is cut, and its later results are void. After a crash or a hang, the row's
 * owner is a node whose advisory lock is gone, so another node may acquire the row. If the answer to an acquisition or a
 * release is lost, this node may own a row that it does not hold. It finds and acquires that row like one without an owner.
 */
export class LeaseHolder<Row extends Lease, Worker extends LeaseWorker<Row>> {
  readonly #options: LeaseHolderOptions<Row, Worker>
  readonly #held = new Map<string, Held<Worker>>()
  readonly #hinted = new Set<string>()
  readonly #acquiring: Loop
  readonly #checking: Loop
  readonly #outage: OutageLog
  /** Whether all rows must be searched. */
  #isPollDue = true

  constructor(options: LeaseHolderOptions<Row, Worker>) {
    this.#options = options
    const { log, membership, source } = options
    const { name } = source.leases.table
    this.#outage = new OutageLog({ log, work: `${name}s` })
    // The other nodes see that our lock is gone and take over, so no work may go on under the old number.
    membership.onLost(() => this.#cutAll())
    this.#acquiring = new Loop({
      name: `acquire ${name}s`,
      run: () => this.#acquire(),
      collectMs: debounceMs,
      log,
    })
    this.#checking = new Loop({
      name: `check ${name}s`,
      run: () => this.#check(),
      intervalMs: checkIntervalMs,
      log,
    })
  }

  start(): void {
    this.#acquiring.start()
    this.#checking.start()
  }

  /** Searches for all rows with work. */
  poll(): void {
    this.#isPollDue = true
    this.#acquiring.wake()
  }

  /** Wakes the workers of keys that have work. Keys without a worker are searched for at once. */
  wake(keys: readonly string[]): void {
    for (const key of keys) {
      const held = this.#held.get(key)
      if (held) held.worker.wake()
      else this.#hint(key)
    }
  }

  /** Wakes the workers of keys that another node found work for. That node acquires the keys without an owner. */
  wakeHeld(keys: readonly string[]): void {
    for (const key of keys) this.#held.get(key)?.worker.wake()
  }

  #hint(key: string): void {
    this.#hinted.add(key)
    this.#acquiring.wake()
  }

  /** Takes no new work. Work under way ends within `graceMs` or is cut. Then all leases are released at once. */
  async stop(graceMs: number): Promise<void> {
    await this.#acquiring.stop()
    const held = [...this.#held.values()]
    for (const { worker } of held) worker.stop()
    const timer = setTimeout(() => this.#cutAll(), graceMs)
    await Promise.all(held.map(({ ended }) => ended))
    clearTimeout(timer)
    await this.#checking.stop()
  }

  #cutAll(): void {
    for (const { worker } of this.#held.values()) worker.cut()
  }

  /** Searches for hinted keys, and for all rows with work if some work is due. */
  async #acquire(): Promise<boolean> {
    const { db, clock, membership, source } = this.#options
    const { nodeId } = membership
    if (nodeId === null || !membership.isCertain) return false
    const isPoll = this.#isPollDue
    if (!isPoll && this.#hinted.size === 0 && !source.hasMore(this.#held)) return false
    const at = clock.now()
    this.#isPollDue = false
    const asker = { nodeId, held: [...this.#held.keys()] }
    const search = { db, asker, at, hinted: this.#hinted, isPoll, held: this.#held }
    const keys = await source.find(search).catch((error) => {
      this.#isPollDue ||= isPoll
      throw error
    })
    // The database has answered, so there is no outage.
    if (isPoll) this.#outage.succeed()
    const rows = keys.length > 0 ? await source.leases.acquire(db.writer, asker, at, keys) : []
    if (membership.nodeId !== nodeId) return true
    for (const row of rows) this.#hold(nodeId, row)
    if (source.hasMore(this.#held)) this.#acquiring.wake()
    return this.#hinted.size > 0
  }

  #hold(nodeId: number, row: Row): void {
    const { source, clock, log, membership } = this.#options
    const { key, epoch } = row
    const worker = source.createWorker(row, {
      clock,
      log,
      mayFinish: () => this.#held.get(key) === held && membership.nodeId === nodeId && membership.isCertain,
      idleMs,
      onRoom: () => this.#acquiring.wake(),
    })
    const held: Held<Worker> = { epoch, worker, ended: Promise.resolve() }
    // The new lease may replace a lost one whose worker has not ended yet.
    this.#held.get(key)?.worker.cut()
    this.#held.set(key, held)
    held.ended = this.#work(nodeId, row, held)
  }

  async #work(nodeId: number, row: Row, held: Held<Worker>): Promise<void> {
    const { db, log, source } = this.#options
    const { leases } = source
    try {
      await held.worker.run()
    } catch (error) {
      if (isLost(error)) {
        this.#outage.fail(error)
        // The database may have returned already. The poll after the release ends the outage.
        this.#isPollDue = true
      } else log.warn({ err: error, [leases.table.name]: row.key }, 'leased work was interrupted')
    }
    await leases.release(db.writer, nodeId, row).catch(() => {}) // a row that we own and do not hold can be acquired
    if (this.#held.get(row.key) !== held) return
    this.#held.delete(row.key)
    if (held.worker.isWoken) this.#hint(row.key)
    else this.#acquiring.wake()
  }

  async #check(): Promise<boolean> {
    const { db, membership, source } = this.#options
    const { nodeId } = membership
    if (nodeId === null || this.#held.size === 0) return false
    const held = [...this.#held].map(([key, { epoch }]) => ({ key, epoch }))
    const rows = await source.leases.check(db.writer, nodeId, held)
    const kept = new Map(rows.map((row) => [row.key, row]))
    for (const { key, epoch } of held) {
      const current = this.#held.get(key)
      if (current?.epoch !== epoch) continue
      const row = kept.get(key)
      if (row) current.worker.apply?.(row)
      else current.worker.cut()
    }
    return false
  }
}
