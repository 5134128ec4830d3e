// The round robin of one destination queue: a round passes all its organizations, a few of them in each claim.

/** The result of one claim for a round: how far the round is, the earliest due time seen, and whether the round is over. */
interface RoundState {
  cursor: string | null
  due_ms: number | null
  is_over: boolean
}

/** The rounds of first attempts (`untried`) and of retries (`retried`). */
export type RoundStates = Record<'untried' | 'retried', RoundState>

/** Returns when the earliest delivery seen falls due; infinity if there is none. */
export function dueOf({ untried, retried }: RoundStates): number {
  return Math.min(untried.due_ms ?? Number.POSITIVE_INFINITY, retried.due_ms ?? Number.POSITIVE_INFINITY)
}

const beforeAll = '00000000-0000-0000-0000-000000000000'
/** The pause between two rounds of retries: there can be many, and none is urgent. */
const retriedRestMs = 1_000

/**
 * A round through the organizations. It continues after `cursor`, and ends at `until`, where it began. `until` null: it is
 * over.
 */
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

/** The rounds of one queue. Its owner keeps them as long as its lease. */
export class RoundRobin {
  readonly #untried = new Round()
  readonly #retried = new Round()
  #retriedAgainMs = 0

  /** Begins a claim. A round of retries continues where the last claim left it; returns whether there is such a round. */
  begin(at: Date): 'goes on' | 'new' {
    this.#untried.begin()
    if (this.#retried.until !== null) return 'goes on'
    if (at.getTime() >= this.#retriedAgainMs) this.#retried.begin()
    return 'new'
  }

  /** Begins a search for the next due time. Restarts the rounds, because what they saw may have been claimed since. */
  beginAnew(at: Date): void {
    if (this.begin(at) === 'goes on') this.#retried.begin()
  }

  /** Stops both rounds, so that the next claim starts at the delivery found due. */
  end(): void {
    this.#untried.until = null
    this.#retried.until = null
    this.#retriedAgainMs = 0
  }

  /** The cursors and ends of both rounds for the next claim. Null: the claim skips this round. */
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

  /** When the earliest delivery that these rounds have seen falls due; infinity if there is none. */
  get dueMs(): number {
    return Math.min(this.#untried.dueMs, this.#retried.dueMs)
  }
}
