// Keeps callers away from what does not answer: after failures in a row nobody waits for it, until a probe finds it again.

export interface CircuitOptions {
  /** So many failures in a row open it. */
  maxFailures: number
  /** From the last failure to the probe, and from one probe to the next. */
  restMs: number
  /** Whether it lives, asked while no caller waits; never rejects. */
  probe(): Promise<boolean>
}

/**
 * `closed`: everybody calls. `open`: nobody does. `half_open`: a probe was answered, so one may. `trying`: that one does.
 */
type State = 'closed' | 'open' | 'half_open' | 'trying'

/** Each call that was admitted ends with one of `succeed`, `fail` and `release`. */
export class CircuitBreaker {
  readonly #options: CircuitOptions
  #state: State = 'closed'
  #failures = 0
  #isStopped = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /** Whether a call may be made now; of a half open circuit, the first to ask makes it. */
  admit(): boolean {
    if (this.#state === 'half_open') this.#state = 'trying'
    else if (this.#state !== 'closed') return false
    return true
  }

  /** An answer shows that it lives, whatever became of the calls before. */
  succeed(): void {
    clearTimeout(this.#timer)
    this.#failures = 0
    this.#state = 'closed'
  }

  fail(): void {
    if (this.#state === 'open') return
    this.#failures++
    if (this.#state !== 'closed' || this.#failures >= this.#options.maxFailures) this.#open()
  }

  /** The call said nothing about it: another may. */
  release(): void {
    if (this.#state === 'trying') this.#state = 'half_open'
  }

  /** No more probes. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #open(): void {
    this.#state = 'open'
    clearTimeout(this.#timer)
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#probe(), this.#options.restMs).unref()
  }

  async #probe(): Promise<void> {
    const isAlive = await this.#options.probe()
    if (this.#state !== 'open') return
    if (isAlive) this.#state = 'half_open'
    else this.#open()
  }
}
