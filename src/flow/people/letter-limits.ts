// Limits the service's letters: each kind has its own share, and invitations count against the member who sends them.
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

/** The sum of all shares: the limits of the service's own organization. */
export const allLetters = { perMinute: sumOf('perMinute'), perDay: sumOf('perDay') }

/** Limits for invitations by one person, and by one organization. */
const ofInviter: readonly Bound[] = [
  { max: 20, windowMs: hourMs },
  { max: 50, windowMs: dayMs },
]
/** Limits for invitations from one network, which may serve several offices. */
const ofNetwork: readonly Bound[] = [
  { max: 40, windowMs: hourMs },
  { max: 100, windowMs: dayMs },
]
const ofWideNetwork: readonly Bound[] = [
  { max: 200, windowMs: hourMs },
  { max: 500, windowMs: dayMs },
]

/** Limits for letters to the operator about requests from one network, and below from its wide network. */
const ofRequests: readonly Bound[] = [
  { max: 5, windowMs: hourMs },
  { max: 15, windowMs: dayMs },
]
const ofWideRequests: readonly Bound[] = [
  { max: 20, windowMs: hourMs },
  { max: 60, windowMs: dayMs },
]

type Deps = { db: Db; clock: Clock; secretBox: SecretBox }

/** Counts letters when they are sent. Nothing is taken back: the letter of a withdrawn invitation was still sent. */
export class LetterLimits {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Counts a letter of the kind. Throws `unavailable` if its share of the minute or the day is used up. */
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

  /** Counts an invitation for its organization, person and network. Throws `too_many_attempts` if one is at its limit. */
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
      'Too many invitations. A person and an organization can send 20 per hour and 50 per day. Try again later.'
    throw new ServiceError('too_many_attempts', message, Math.max(1, waitSeconds))
  }

  /** Counts a request for access against its network. False if a letter about the request would exceed the limit. */
  async admitRequest(tx: Tx, ip: string): Promise<boolean> {
    const own = this.#countsOf(`requests of ${networkOf(ip)}`, ofRequests)
    // Requests beyond a network's own limit do not count against its neighbours.
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

/** Adds to every count. Returns the first full one; the caller must then roll back. Sorted, to avoid deadlocks. */
async function findFull(tx: Tx, counts: readonly LetterCount[]): Promise<LetterCount | null> {
  for (const count of counts.toSorted((one, other) => one.subject.compare(other.subject)))
    if (!(await countLetter(tx, count))) return count
  return null
}
