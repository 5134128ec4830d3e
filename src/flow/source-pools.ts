// Pools of source addresses: which pool a mail leaves from, and how much a new address may send.
import { isIPv6 } from 'node:net'
import { readRoute } from './route-policy.ts'

/** The messages that a new source may send in 24 hours: one limit for each day, in UTC. There is none after the last day. */
export interface WarmUp {
  fromMs: number
  perDay: readonly number[]
}

/** An address that mail leaves from, and the name with which it greets. */
export interface Source {
  address: string
  ehlo: string
  warmUp: WarmUp | null
}

/** A pool without organizations and purposes gets the mail that no other pool gets. */
export interface SourcePool {
  name: string
  organizations: readonly string[]
  purposes: readonly string[]
  sources: readonly Source[]
}

/** The purpose of mail that names none. */
export const usualPurpose = 'unclassified'

/** Returns the name of the pool for a mail of this organization and purpose. Null: it leaves as if there were no pools. */
export type ChoosePool = (organizationId: string, purpose: string) => string | null

/** An organization's pool comes before that of a purpose. */
export function poolChoice(pools: readonly SourcePool[]): ChoosePool {
  const owners = new Map(
    pools.flatMap(({ name, organizations, purposes }) =>
      [...organizations, ...purposes].map((owner) => [owner, name] as const),
    ),
  )
  const usual = pools.find(takesTheRest)?.name ?? null
  return (organizationId, purpose) => owners.get(organizationId) ?? owners.get(purpose) ?? usual
}

export function takesTheRest({ organizations, purposes }: SourcePool): boolean {
  return organizations.length === 0 && purposes.length === 0
}

/** Returns the sources of the queue's pool. Null: it has no pool, or a pool that is not in the file. */
export function sourcesOf(pools: readonly SourcePool[], route: string): readonly Source[] | null {
  if (pools.length === 0) return null
  const { pool } = readRoute(route)
  return pools.find(({ name }) => name === pool)?.sources ?? null
}

/** Whether a connection to `target` may leave from the source: both have the same family. */
export function isOfFamily({ address }: Source, target: string): boolean {
  return isIPv6(address) === isIPv6(target)
}

const dayMs = 86_400_000

/** Returns the limit of the plan's present day, and its end. Null: the plan is over. Before the plan, its first day counts. */
export function warmUpAt(
  { fromMs, perDay }: WarmUp,
  nowMs: number,
): { count: number; periodMs: number; untilMs: number } | null {
  const day = Math.max(0, Math.floor((nowMs - fromMs) / dayMs))
  const count = perDay[day]
  return count === undefined ? null : { count, periodMs: dayMs, untilMs: fromMs + (day + 1) * dayMs }
}
