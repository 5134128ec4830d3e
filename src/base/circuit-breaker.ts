// Stops calls to a service that does not answer: after failures in a row no caller waits for it, until a probe succeeds.

export interface CircuitOptions {
  /** This many failures in a row open the circuit. */
  maxFailures: number
  /** From the last failure to the probe, and from one probe to the next. */
  restMs: number
  /** Returns whether the service is alive. Called while no caller waits. Never rejects. */
  probe(): Promise<boolean>
}

/**
 * `closed`: every call is admitted. `open`: none is. `half_open`: a probe succeeded, so one call is admitted. `trying`: that
 * call is running.
 */
type State = 'closed' | 'open' | 'half_open' | 'trying'

/** Each admitted call ends with one of `succeed`, `fail` and `release`. */
export class CircuitBreaker {
  readonly #options: CircuitOptions
  #state: State = 'closed'
  #failures = 0
  #isStopped = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /** Returns whether a call may be made now. In a half open circuit, only the first caller may. */
  admit(): boolean {
    if (this.#state === 'half_open') this.#state = 'trying'
    else if (this.#state !== 'closed') return false
    return true
  }

  /** An answer proves that the service is alive, whatever happened before. */
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

  /** Ends a call that did not show whether the service is alive, so another call may try. */
  release(): void {
    if (this.#state === 'trying') this.#state = 'half_open'
  }

  /** Stops the probes. */
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
