// How long a node acts on a cached key, session or organization, and the wait until no node does.
import { setTimeout as sleep } from 'node:timers/promises'

/** A node caches a caller for up to this long. After that, a revocation holds everywhere. */
export const knownForMs = 1_000
/** A request acts on the cached caller for up to this long. After that the caller is checked again. */
export const admissionMs = 100

/** Resolves when no node acts on cached state any more. */
export async function untilKnownEverywhere(): Promise<void> {
  await sleep(knownForMs + admissionMs)
}
