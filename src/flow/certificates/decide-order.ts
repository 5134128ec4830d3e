// Decides when a certificate is ordered, for which names, and when a failed order is repeated; pure.
import { backoffMs } from '../../base/backoff.ts'
import type { AcmeAccountRow, NameRefusal, StoredCertificate } from '../../store/domains/certificates.ts'

const hourMs = 3_600_000

/**
 * Waits after failed orders: eight orders on the first day, four of them within the first hour, two on each later day. Let's
 * Encrypt allows an account five failures an hour for a name.
 */
const failureWaitMs = [10_000, 60_000, 600_000, hourMs, 3 * hourMs, 6 * hourMs, 12 * hourMs]
/** The wait after a completed order. With at most four a day, new names stay below the 50 a week of Let's Encrypt. */
const endedWaitMs = 6 * hourMs
const refusalWaitMs = [6 * hourMs, 12 * hourMs, 24 * hourMs]

/** After this many failed orders in a row, the next ones are for our own names only. */
const patience = 3

type Facts = Pick<AcmeAccountRow, 'certificate' | 'retryAt' | 'refusals' | 'failures'>

export interface Wanted {
  /** Names of this deployment, the most important one first. */
  own: readonly string[]
  /** Other names that resolve to this deployment, such as those of customers' domains. */
  others: readonly string[]
}

/** The names to order a certificate for now. Null if no order is due. */
export function decideOrder(
  { certificate, retryAt, refusals, failures }: Facts,
  { own, others }: Wanted,
  now: Date,
): string[] | null {
  if (retryAt && retryAt > now) return null
  // A customer's name may make every order fail without the authority naming it. It must not cost us our own certificate.
  const wanted = failures < patience ? [...own, ...others] : own
  const refused = new Set(refusals.filter((one) => new Date(one.retryAt) > now).map(({ name }) => name))
  const names = wanted.filter((name) => !refused.has(name))
  return names.length > 0 && isWorthOrdering(certificate, names, now) ? names : null
}

/** Whether a certificate for these names would improve on the current one. */
export function isWorthOrdering(
  certificate: StoredCertificate | null,
  names: readonly string[],
  now: Date,
): boolean {
  if (!certificate || now >= renewalOf(certificate)) return true
  return names.some((name) => !certificate.names.includes(name))
}

/** The time at which a third of the lifetime is left. */
export function renewalOf({ issuedAt, expiresAt }: Pick<StoredCertificate, 'issuedAt' | 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() - (expiresAt.getTime() - issuedAt.getTime()) / 3)
}

/** The earliest time of the next order after `failures` failed ones in a row. */
export function afterFailure(failures: number, now: Date): Date {
  return new Date(now.getTime() + backoffMs(failureWaitMs, failures))
}

/** The earliest time of the next order after a completed one. */
export function afterEnd(now: Date): Date {
  return new Date(now.getTime() + endedWaitMs)
}

/** The refused names after an order for `ordered`: those omitted from it, and earlier ones that it did not ask for. */
export function followRefusals(
  before: readonly NameRefusal[],
  ordered: readonly string[],
  refused: readonly { name: string; reason: string }[],
  now: Date,
): NameRefusal[] {
  const kept = before.filter(({ name }) => !ordered.includes(name))
  const added = refused.map(({ name, reason }) => {
    const failures = 1 + (before.find((one) => one.name === name)?.failures ?? 0)
    const retryAt = new Date(now.getTime() + backoffMs(refusalWaitMs, failures)).toISOString()
    return { name, reason, failures, retryAt }
  })
  return [...kept, ...added]
}
