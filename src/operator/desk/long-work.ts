// Work that takes longer than a request: begun once, looked at while it goes on, and remembered when it has ended.
import { ServiceError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'

export interface WorkState<Step, Result> {
  state: 'running' | 'done' | 'failed'
  steps: Step[]
  /** Null until it is done. */
  result: Result | null
  /** Why it failed, for people; null otherwise. */
  fault: string | null
  startedAt: Date
  endedAt: Date | null
}

const maxRemembered = 20

/** The work of this node by what it is about; each goes on once at a time. */
export class LongWork<Step, Result> {
  readonly #log: Log
  readonly #states = new Map<string, WorkState<Step, Result>>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Begins it, or finds it going on; `run` tells its steps as they come. */
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

  /** What is not the caller's to see is logged, once. */
  #faultOf(error: Error): string {
    if (error instanceof ServiceError) return error.message
    this.#log.error({ err: error }, 'work of the desk failed')
    return 'Something went wrong here. It has been logged.'
  }
}
