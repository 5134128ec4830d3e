// Decides when a certificate is ordered, for which names, and when an order that failed is made again; pure.
import { backoffMs } from '../../base/backoff.ts'
import type { AcmeAccountRow, NameRefusal, StoredCertificate } from '../../store/domains/certificates.ts'

const hourMs = 3_600_000

/**
 * After an order that failed: eight on the first day, four within the first hour, two on each later day. Let's Encrypt lets an
 * account fail five times an hour for a name.
 */
const failureWaitMs = [10_000, 60_000, 600_000, hourMs, 3 * hourMs, 6 * hourMs, 12 * hourMs]
/** After one that came to its end. With four a day at most, new names keep clear of the 50 a week of Let's Encrypt. */
const endedWaitMs = 6 * hourMs
const refusalWaitMs = [6 * hourMs, 12 * hourMs, 24 * hourMs]

/** After so many orders in a row that failed, the next ones are for our own names alone. */
const patience = 3

type Facts = Pick<AcmeAccountRow, 'certificate' | 'retryAt' | 'refusals' | 'failures'>

export interface Wanted {
  /** Names of this deployment, the most important one first. */
  own: readonly string[]
  /** Names that lead here, of customers' domains among them. */
  others: readonly string[]
}

/** The names to order a certificate for now; null where none is to be ordered. */
export function decideOrder(
  { certificate, retryAt, refusals, failures }: Facts,
  { own, others }: Wanted,
  now: Date,
): string[] | null {
  if (retryAt && retryAt > now) return null
  // A customer's name for which every order fails, in words that do not say whose fault it is, costs us no certificate.
  const wanted = failures < patience ? [...own, ...others] : own
  const refused = new Set(refusals.filter((one) => new Date(one.retryAt) > now).map(({ name }) => name))
  const names = wanted.filter((name) => !refused.has(name))
  return names.length > 0 && isWorthOrdering(certificate, names, now) ? names : null
}

/** Whether a certificate for these names would be any better than the one that is there. */
export function isWorthOrdering(
  certificate: StoredCertificate | null,
  names: readonly string[],
  now: Date,
): boolean {
  if (!certificate || now >= renewalOf(certificate)) return true
  return names.some((name) => !certificate.names.includes(name))
}

/** When a third of the lifetime is left. */
export function renewalOf({ issuedAt, expiresAt }: Pick<StoredCertificate, 'issuedAt' | 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() - (expiresAt.getTime() - issuedAt.getTime()) / 3)
}

/** When the next order may be made after the `failures`-th one in a row that failed. */
export function afterFailure(failures: number, now: Date): Date {
  return new Date(now.getTime() + backoffMs(failureWaitMs, failures))
}

/** When the next order may be made after one that came to its end. */
export function afterEnd(now: Date): Date {
  return new Date(now.getTime() + endedWaitMs)
}

/** What is known of refused names after an order of these names: those that it was issued without, and those not asked for. */
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
