// How long a node acts on what it knew of a key, a session or an organization, and waiting until none does.
import { setTimeout as sleep } from 'node:timers/promises'

/** What a node has looked up of a caller lives this long at most, so a revocation holds everywhere after it. */
export const knownForMs = 1_000
/** A request that came in acts this long at most on what was known of its caller; after that it is looked at again. */
export const admissionMs = 100

/** Resolves when no node acts any more on what it knew. */
export async function untilKnownEverywhere(): Promise<void> {
  await sleep(knownForMs + admissionMs)
}
