// Which destination queues a node acquires next: organizations take part in rounds, and none gets all the slots.
import { divided, mayTake } from '../base/share.ts'
import type { Candidate } from '../store/sending/routes.ts'

/** A queue that this node holds. A queue without an organization takes no slot. */
export interface HeldQueue {
  organizationId: string | null
  /** Whether no message has gone out yet, so that the destination may be one that never answers. */
  isOpening: boolean
}

const maxHeld = 500
const heldRatio = 1
/** One organization's silent destinations keep up to 50 of these slots. */
const maxOpening = 200
const openingRatio = 1 / 3

/**
 * Chooses up to `max` of the candidates, each queue once. If several organizations have mail in a queue, it is acquired
 * for one that still has a slot. So an organization's mail does not wait for another's share. `workers`: the processes
 * that divide the slots.
 */
export function chooseRoutes(
  candidates: readonly Candidate[],
  held: Iterable<HeldQueue>,
  max: number,
  workers = 1,
): Candidate[] {
  const slots = new Slots(held, workers)
  const chosen = new Map<string, Candidate>()
  for (const candidate of inRounds(candidates)) {
    if (chosen.size >= max) break
    if (!chosen.has(candidate.key) && slots.take(candidate.organizationId))
      chosen.set(candidate.key, candidate)
  }
  return [...chosen.values()]
}

/** The taken slots, in all and by organization. */
class Slots {
  readonly #held = new Map<string, number>()
  readonly #opening = new Map<string, number>()
  readonly #max: { held: number; opening: number }
  #heldCount = 0
  #openingCount = 0

  constructor(held: Iterable<HeldQueue>, workers: number) {
    this.#max = { held: divided(maxHeld, workers), opening: divided(maxOpening, workers) }
    for (const holding of held) this.#add(holding)
  }

  take(id: string): boolean {
    const isFree =
      mayTake(this.#held.get(id) ?? 0, this.#heldCount, this.#max.held, heldRatio) &&
      mayTake(this.#opening.get(id) ?? 0, this.#openingCount, this.#max.opening, openingRatio)
    if (isFree) this.#add({ organizationId: id, isOpening: true })
    return isFree
  }

  #add({ organizationId: id, isOpening }: HeldQueue): void {
    if (id === null) return
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1)
    this.#heldCount++
    if (!isOpening) return
    this.#opening.set(id, (this.#opening.get(id) ?? 0) + 1)
    this.#openingCount++
  }
}

/** Orders candidates round robin by organization. An organization's working queues come before its failed ones. */
function inRounds(candidates: readonly Candidate[]): Candidate[] {
  const sorted = candidates.toSorted((one, other) => one.failures - other.failures)
  const counts = new Map<string, number>()
  const rounds = sorted.map((candidate) => {
    const round = counts.get(candidate.organizationId) ?? 0
    counts.set(candidate.organizationId, round + 1)
    return { candidate, round }
  })
  return rounds.sort((one, other) => one.round - other.round).map(({ candidate }) => candidate)
}
