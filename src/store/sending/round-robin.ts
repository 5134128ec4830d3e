// Where the looks at one destination queue go on: its organizations take turns, a few of them at each look.

/** What one look saw of a round: how far it came, when the first of those it saw falls due, whether any are left. */
interface RoundState {
  cursor: string | null
  due_ms: number | null
  is_over: boolean
}

/** Of what was never tried (`untried`), and of what waits for its next attempt (`retried`). */
export type RoundStates = Record<'untried' | 'retried', RoundState>

/** When the first falls due that the look saw; infinity where none does. */
export function dueOf({ untried, retried }: RoundStates): number {
  return Math.min(untried.due_ms ?? Number.POSITIVE_INFINITY, retried.due_ms ?? Number.POSITIVE_INFINITY)
}

const beforeAll = '00000000-0000-0000-0000-000000000000'
/** Between two rounds of those who wait for their next attempt: they can be many, and none of them hurries. */
const retriedRestMs = 1_000

/** A round through the organizations: from the one after `cursor` up to `until`, where it began; null once it is over. */
class Round {
  cursor = beforeAll
  until: string | null = null
  dueMs = Number.POSITIVE_INFINITY

  begin(): void {
    this.until = this.cursor
    this.dueMs = Number.POSITIVE_INFINITY
  }

  see({ cursor, due_ms, is_over }: RoundState): void {
    this.cursor = cursor ?? this.cursor
    this.dueMs = Math.min(this.dueMs, due_ms ?? Number.POSITIVE_INFINITY)
    if (is_over) this.until = null
  }
}

/** The owner of a queue keeps one of these for as long as its lease. */
export class RoundRobin {
  readonly #untried = new Round()
  readonly #retried = new Round()
  #retriedAgainMs = 0

  /** A claim begins. A round of the later ones goes on where the claim before left it; returns whether there is one. */
  begin(at: Date): 'goes on' | 'new' {
    this.#untried.begin()
    if (this.#retried.until !== null) return 'goes on'
    if (at.getTime() >= this.#retriedAgainMs) this.#retried.begin()
    return 'new'
  }

  /** A look for what falls due next begins: what a round that is not over has seen may have been claimed since. */
  beginAnew(at: Date): void {
    if (this.begin(at) === 'goes on') this.#retried.begin()
  }

  /** Ends the rounds where they are: the next claim is to begin with what was just seen to be due. */
  end(): void {
    this.#untried.until = null
    this.#retried.until = null
    this.#retriedAgainMs = 0
  }

  /** Where the next look is to go on and where it ends, of the fresh and of the later ones; null: not at those. */
  get bounds(): Record<string, string | null> {
    const [untried, retried] = [this.#untried, this.#retried]
    return {
      untried: untried.until && untried.cursor,
      untried_until: untried.until,
      retried: retried.until && retried.cursor,
      retried_until: retried.until,
    }
  }

  see({ untried, retried }: RoundStates, at: Date): void {
    const wasUnderWay = this.#retried.until !== null
    this.#untried.see(untried)
    this.#retried.see(retried)
    if (wasUnderWay && retried.is_over)
      this.#retriedAgainMs = Math.min(at.getTime() + retriedRestMs, this.#retried.dueMs)
  }

  get areOver(): boolean {
    return this.#untried.until === null && this.#retried.until === null
  }

  /** When the first falls due that these rounds have seen; infinity where none does. */
  get dueMs(): number {
    return Math.min(this.#untried.dueMs, this.#retried.dueMs)
  }
}
