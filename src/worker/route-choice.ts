// Which destination queues a node takes over next: organizations take turns, and none of them takes all the places.
import { mayTake } from '../base/share.ts'
import type { Candidate } from '../store/routes.ts'

/** A queue that is held; nobody's, where it takes no place. */
export interface Holding {
  organizationId: string | null
  /** No message has gone out yet: its destination may be one that never answers. */
  isOpening: boolean
}

const maxHeld = 500
const heldRatio = 1
/** One organization's silent destinations keep 50 of them. */
const maxOpening = 200
const openingRatio = 1 / 3

/**
 * Up to `most` of the candidates, each queue once. A queue in which several organizations have mail is taken for one that
 * still has a place, so that nobody's mail waits for the share of another.
 */
export function chooseRoutes(
  candidates: readonly Candidate[],
  held: Iterable<Holding>,
  most: number,
): Candidate[] {
  const places = new Places(held)
  const chosen = new Map<string, Candidate>()
  for (const candidate of inTurns(candidates)) {
    if (chosen.size >= most) break
    if (!chosen.has(candidate.key) && places.take(candidate.organizationId))
      chosen.set(candidate.key, candidate)
  }
  return [...chosen.values()]
}

/** How many of the places are taken, and by whom. */
class Places {
  readonly #held = new Map<string, number>()
  readonly #opening = new Map<string, number>()
  #heldCount = 0
  #openingCount = 0

  constructor(held: Iterable<Holding>) {
    for (const holding of held) this.#add(holding)
  }

  take(id: string): boolean {
    const isFree =
      mayTake(this.#held.get(id) ?? 0, this.#heldCount, maxHeld, heldRatio) &&
      mayTake(this.#opening.get(id) ?? 0, this.#openingCount, maxOpening, openingRatio)
    if (isFree) this.#add({ organizationId: id, isOpening: true })
    return isFree
  }

  #add({ organizationId: id, isOpening }: Holding): void {
    if (id === null) return
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1)
    this.#heldCount++
    if (!isOpening) return
    this.#opening.set(id, (this.#opening.get(id) ?? 0) + 1)
    this.#openingCount++
  }
}

/** First one of each organization, then a second of each; of one's own, those that work before those that failed. */
function inTurns(candidates: readonly Candidate[]): Candidate[] {
  const sorted = candidates.toSorted((one, other) => one.failures - other.failures)
  const counts = new Map<string, number>()
  const turns = sorted.map((candidate) => {
    const turn = counts.get(candidate.organizationId) ?? 0
    counts.set(candidate.organizationId, turn + 1)
    return { candidate, turn }
  })
  return turns.sort((one, other) => one.turn - other.turn).map(({ candidate }) => candidate)
}
