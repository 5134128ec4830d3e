// How many letters of the service leave: each kind has a share of its own, and invitations count against who has them sent.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { networkOf, wideNetworkOf } from '../../base/ip-address.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { countLetter, type LetterCount } from '../../store/people/letter-counts.ts'
import type { LetterKind } from './letters.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

interface Bound {
  max: number
  windowMs: number
}

/** Security: with shares, invitations cannot use up the letters that people need to sign up and to get in again. */
const shares: Readonly<Record<LetterKind, { perMinute: number; perDay: number }>> = {
  sign_up: { perMinute: 300, perDay: 60_000 },
  reset: { perMinute: 300, perDay: 60_000 },
  invitation: { perMinute: 150, perDay: 30_000 },
  notice: { perMinute: 250, perDay: 50_000 },
  request: { perMinute: 30, perDay: 1_000 },
  approval: { perMinute: 100, perDay: 10_000 },
}

const sumOf = (window: 'perMinute' | 'perDay') =>
  Object.values(shares).reduce((sum, share) => sum + share[window], 0)

/** What all kinds may have together: the limits of the service's own organization. */
export const allLetters = { perMinute: sumOf('perMinute'), perDay: sumOf('perDay') }

/** Of invitations that one person, and that one organization, has sent. */
const ofInviter: readonly Bound[] = [
  { max: 20, windowMs: hourMs },
  { max: 50, windowMs: dayMs },
]
/** Of invitations from one network, in which there may be several offices. */
const ofNetwork: readonly Bound[] = [
  { max: 40, windowMs: hourMs },
  { max: 100, windowMs: dayMs },
]
const ofWideNetwork: readonly Bound[] = [
  { max: 200, windowMs: hourMs },
  { max: 500, windowMs: dayMs },
]

/** Of letters to the operator about requests from one network, and from it and its neighbours. */
const ofRequests: readonly Bound[] = [
  { max: 5, windowMs: hourMs },
  { max: 15, windowMs: dayMs },
]
const ofWideRequests: readonly Bound[] = [
  { max: 20, windowMs: hourMs },
  { max: 60, windowMs: dayMs },
]

type Deps = { db: Db; clock: Clock; secretBox: SecretBox }

/** Counts letters when they are sent. Nothing is given back: an invitation that is withdrawn was mailed all the same. */
export class LetterLimits {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Counts a letter of the kind; `unavailable` if its share of the minute or of the day is used up. */
  async admit(kind: LetterKind): Promise<void> {
    const { perMinute, perDay } = shares[kind]
    const bounds = [
      { max: perMinute, windowMs: 60_000 },
      { max: perDay, windowMs: dayMs },
    ]
    const counts = this.#countsOf(`share of ${kind}`, bounds)
    await this.#deps.db.transaction(async (tx) => {
      if (await findFull(tx, counts)) throw new ServiceError('unavailable')
    })
  }

  /** Counts an invitation against its organization, person and network; `too_many_attempts` if one of them has sent its number. */
  async countInvitation(
    tx: Tx,
    { organizationId, personId, ip }: { organizationId: string; personId: string; ip: string },
  ): Promise<void> {
    const counts = [
      ...this.#countsOf(`organization ${organizationId}`, ofInviter),
      ...this.#countsOf(`person ${personId}`, ofInviter),
      ...this.#countsOf(`network ${networkOf(ip)}`, ofNetwork),
      ...this.#countsOf(`network ${wideNetworkOf(ip)} and its neighbours`, ofWideNetwork),
    ]
    const full = await findFull(tx, counts)
    if (!full) return
    const waitSeconds = Math.ceil((full.endsAt.getTime() - this.#deps.clock.nowMs()) / 1000)
    const message =
      'Too many invitations: a person and an organization send 20 an hour and 50 a day. Try again later.'
    throw new ServiceError('too_many_attempts', message, Math.max(1, waitSeconds))
  }

  /** Counts a request for access against its network; false if a letter about it would be one too many. */
  async admitRequest(tx: Tx, ip: string): Promise<boolean> {
    const own = this.#countsOf(`requests of ${networkOf(ip)}`, ofRequests)
    // Requests that are over a network's own number do not count against its neighbours.
    if (await findFull(tx, own)) return false
    const wide = this.#countsOf(`requests of ${wideNetworkOf(ip)} and its neighbours`, ofWideRequests)
    return !(await findFull(tx, wide))
  }

  #countsOf(subject: string, bounds: readonly Bound[]): LetterCount[] {
    const nowMs = this.#deps.clock.nowMs()
    return bounds.map(({ max, windowMs }) => {
      const startMs = nowMs - (nowMs % windowMs)
      const window = `${subject}\n${windowMs}\n${startMs}`
      const digest = this.#deps.secretBox.digest('letter counts', window)
      return { subject: digest, max, endsAt: new Date(startMs + windowMs) }
    })
  }
}

/** Counts all of them; the first that is full, after which the caller has to undo the others. In one order, against deadlocks. */
async function findFull(tx: Tx, counts: readonly LetterCount[]): Promise<LetterCount | null> {
  for (const count of counts.toSorted((one, other) => one.subject.compare(other.subject)))
    if (!(await countLetter(tx, count))) return count
  return null
}
