// What the roles of a node have in common: that they stop, whom they wake, and how long they may take.
import type { KeyedSignal } from '../base/keyed-signal.ts'
import type { Signal } from '../base/signal.ts'
import type { Settings } from '../config/settings.ts'
import { isPublicUnicast } from '../dns/public-address.ts'

/** A part that runs; parts stop in the reverse order of their start. */
export interface Part {
  stop(): Promise<void>
}

/** How long what is on the wire may still take when the node stops. */
export const graceMs = 20_000

/** Where this node's loops are woken; where a role is not run here, nobody waits. */
export interface Signals {
  /** Mail was received. */
  filing: Signal
  /** Something was announced. */
  announced: Signal
  /** By the id of an inbox: it has a message that it did not have before. */
  grown: KeyedSignal
}

/** Says of a domain whether it is the deployment's own. */
export function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}

/** Says of an address whether mail may go there. */
export function allowsMailTo({ allowPrivateNetworks }: Settings): (ip: string) => boolean {
  return (ip) => allowPrivateNetworks || isPublicUnicast(ip)
}
