// Work that takes longer than a request: starts once, can be polled while it runs, and is remembered when it has ended.
import { ServiceError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'

export interface WorkState<Step, Result> {
  state: 'running' | 'done' | 'failed'
  steps: Step[]
  /** Null until it is done. */
  result: Result | null
  /** Why it failed, for people; otherwise null. */
  fault: string | null
  startedAt: Date
  endedAt: Date | null
}

const maxRemembered = 20

/** The work of this node by its subject. Each subject has one run at a time. */
export class LongWork<Step, Result> {
  readonly #log: Log
  readonly #states = new Map<string, WorkState<Step, Result>>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Starts the work, or returns it if it is already running. `run` reports its steps as they come. */
  begin(about: string, run: (step: (words: Step) => void) => Promise<Result>): WorkState<Step, Result> {
    const known = this.#states.get(about)
    if (known?.state === 'running') return known
    const steps: Step[] = []
    const running: WorkState<Step, Result> = {
      state: 'running',
      steps,
      result: null,
      fault: null,
      startedAt: new Date(),
      endedAt: null,
    }
    this.#remember(about, running)
    run((step) => void steps.push(step)).then(
      (result) => Object.assign(running, { state: 'done', result, endedAt: new Date() }),
      (error) =>
        Object.assign(running, { state: 'failed', fault: this.#faultOf(error), endedAt: new Date() }),
    )
    return running
  }

  find(about: string): WorkState<Step, Result> | null {
    return this.#states.get(about) ?? null
  }

  #remember(about: string, state: WorkState<Step, Result>): void {
    this.#states.delete(about)
    this.#states.set(about, state)
    const [oldest] = this.#states.keys()
    if (this.#states.size > maxRemembered && this.#states.get(oldest!)?.state !== 'running')
      this.#states.delete(oldest!)
  }

  /** Logs, once, an error that the caller may not see. */
  #faultOf(error: Error): string {
    if (error instanceof ServiceError) return error.message
    this.#log.error({ err: error }, 'desk operation failed')
    return 'Internal error. It has been logged.'
  }
}
