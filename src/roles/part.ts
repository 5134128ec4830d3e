// What the roles of a node have in common: that they stop, whom they wake, and how long they may take.
import type { Settings } from '../config/settings.ts'

/** A part that runs; parts stop in the reverse order of their start. */
export interface Part {
  stop(): Promise<void>
}

/** How long what is on the wire may still take when the node stops. */
export const graceMs = 20_000

/** Who is to look for work on this node; nobody, where its role is not run here. */
export interface Wakes {
  delivery(routes: string[]): void
  filing(): void
  telling(): void
}

/** Says of a domain whether it is the deployment's own. */
export function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}
