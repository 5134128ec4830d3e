// Types and rules that the roles of a node share: how they stop, their signals, their grace period, and their own domain.
import type { KeyedSignal } from '../base/keyed-signal.ts'
import type { Signal } from '../base/signal.ts'
import type { Settings } from '../config/settings.ts'
import { isPublicUnicast } from '../dns/public-address.ts'

/** A running part. Parts stop in the reverse order of their start. */
export interface Part {
  stop(): Promise<void>
}

/** How long work in flight may still take when the node stops. */
export const graceMs = 20_000

/** Signals that wake this node's loops. Waking one whose role does not run here does nothing. */
export interface Signals {
  /** Mail was received. */
  filing: Signal
  /** An event was announced. */
  announced: Signal
  /** Keyed by inbox id: the inbox has a message that it did not have before. */
  grown: KeyedSignal
}

/** Returns a check of whether a domain is the deployment's own. */
export function isLocal({ managedDomain }: Settings): (domain: string) => boolean {
  return (domain) => domain === managedDomain
}

/** Returns a check of whether mail may go to an IP address. */
export function allowsMailTo({ allowPrivateNetworks }: Settings): (ip: string) => boolean {
  return (ip) => allowPrivateNetworks || isPublicUnicast(ip)
}
