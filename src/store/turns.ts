// Where the looks at one destination queue go on: its organizations take turns, a few of them at each look.

/** What one look saw of a round: how far it came, when the first of those it saw falls due, whether any are left. */
interface SeenRound {
  place: string | null
  due_ms: number | null
  is_over: boolean
}

/** Of what was never tried (`fresh`), and of what waits for its next attempt (`later`). */
export type Seen = Record<'fresh' | 'later', SeenRound>

/** When the first falls due that the look saw; infinity where none does. */
export function dueOf({ fresh, later }: Seen): number {
  return Math.min(fresh.due_ms ?? Number.POSITIVE_INFINITY, later.due_ms ?? Number.POSITIVE_INFINITY)
}

const beforeAll = '00000000-0000-0000-0000-000000000000'
/** Between two rounds of those who wait for their next attempt: they can be many, and none of them hurries. */
const laterRestMs = 1_000

/** A round through the organizations: from the one after `place` up to `until`, where it began; null once it is over. */
class Round {
  place = beforeAll
  until: string | null = null
  dueMs = Number.POSITIVE_INFINITY

  begin(): void {
    this.until = this.place
    this.dueMs = Number.POSITIVE_INFINITY
  }

  see({ place, due_ms, is_over }: SeenRound): void {
    this.place = place ?? this.place
    this.dueMs = Math.min(this.dueMs, due_ms ?? Number.POSITIVE_INFINITY)
    if (is_over) this.until = null
  }
}

/** The owner of a queue keeps one of these for as long as its lease. */
export class Turns {
  readonly #fresh = new Round()
  readonly #later = new Round()
  #laterAgainMs = 0

  /** A claim begins. A round of the later ones goes on where the claim before left it; answers whether there is one. */
  begin(at: Date): 'goes on' | 'new' {
    this.#fresh.begin()
    if (this.#later.until !== null) return 'goes on'
    if (at.getTime() >= this.#laterAgainMs) this.#later.begin()
    return 'new'
  }

  /** A look for what falls due next begins: what a round that is not over has seen may have been claimed since. */
  beginAnew(at: Date): void {
    if (this.begin(at) === 'goes on') this.#later.begin()
  }

  /** Ends the rounds where they are: the next claim is to begin with what was just seen to be due. */
  end(): void {
    this.#fresh.until = null
    this.#later.until = null
    this.#laterAgainMs = 0
  }

  /** Where the next look is to go on and where it ends, of the fresh and of the later ones; null: not at those. */
  get bounds(): Record<string, string | null> {
    const [fresh, later] = [this.#fresh, this.#later]
    return {
      fresh: fresh.until && fresh.place,
      fresh_until: fresh.until,
      later: later.until && later.place,
      later_until: later.until,
    }
  }

  see({ fresh, later }: Seen, at: Date): void {
    const wasUnderWay = this.#later.until !== null
    this.#fresh.see(fresh)
    this.#later.see(later)
    if (wasUnderWay && later.is_over)
      this.#laterAgainMs = Math.min(at.getTime() + laterRestMs, this.#later.dueMs)
  }

  get areOver(): boolean {
    return this.#fresh.until === null && this.#later.until === null
  }

  /** When the first falls due that these rounds have seen; infinity where none does. */
  get dueMs(): number {
    return Math.min(this.#fresh.dueMs, this.#later.dueMs)
  }
}
