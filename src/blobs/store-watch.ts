// Checks every two seconds whether the blob store is ours: its disk may be unmounted, or S3 unreachable, while the node runs.
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import { within } from '../base/within.ts'
import type { Blobs } from './blobs.ts'

const checkMs = 2_000
const patienceMs = 5_000

interface StoreWatchOptions {
  blobs: Pick<Blobs, 'findFault'>
  log: Log
}

/** Logs once when the store is gone and once when it is back. Each large mail is also checked when it is stored. */
export class StoreWatch {
  readonly #options: StoreWatchOptions
  #fault: string | null = null
  #isChecking = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: StoreWatchOptions) {
    this.#options = options
  }

  /** Why large mail cannot be stored; null if it can. */
  get fault(): string | null {
    return this.#fault
  }

  /** Checks once, and then every two seconds until `stop`. */
  async start(): Promise<void> {
    await this.#check()
    this.#timer = setInterval(() => void this.#check(), checkMs)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
  }

  /** Asks a hanging file system only once, however long it takes to answer. */
  async #check(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    const found = this.#options.blobs.findFault().catch((error: Error) => error.message)
    void found.then((fault) => {
      this.#isChecking = false
      this.#note(fault)
    })
    this.#note(await within(patienceMs, found, () => 'the blob store does not answer'))
  }

  #note(fault: string | null): void {
    const { log } = this.#options
    if (fault !== null && this.#fault === null)
      log.error({ reason: fault }, 'the blob store is gone: large mail is refused until it is back')
    if (fault === null && this.#fault !== null)
      log.info('the blob store is back: large mail is accepted again')
    this.#fault = fault
    meters.blobFolderOk.set(fault === null ? 1 : 0)
  }
}
