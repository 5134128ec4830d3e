// Whether a key can still be used, and for how long.
import type { Tone } from '../../parts/badge.tsx'
import type { keys } from '../../texts/keys.ts'
import { memberScopes, serverScopes } from './member-scopes.ts'
import type { Key } from './queries.ts'

export type KeyState = keyof typeof keys.states

const soonMs = 7 * 86_400_000

export const keyTones: Record<KeyState, Tone> = {
  active: 'good',
  soon: 'wait',
  expired: 'bad',
  revoked: 'idle',
}

export function stateOf({ revokedAt, expiresAt }: Key, nowMs: number): KeyState {
  if (revokedAt) return 'revoked'
  if (!expiresAt) return 'active'
  const leftMs = Date.parse(expiresAt) - nowMs
  if (leftMs <= 0) return 'expired'
  return leftMs < soonMs ? 'soon' : 'active'
}

export function isInUse(key: Key, nowMs: number): boolean {
  const state = stateOf(key, nowMs)
  return state === 'active' || state === 'soon'
}

/** False for a key with rights that members cannot give. */
export function canRotate({ kind, scopes, revokedAt }: Key, hasServerKeys: boolean): boolean {
  const given = kind === 'server' && hasServerKeys ? [...memberScopes, ...serverScopes] : memberScopes
  return !revokedAt && scopes.every((scope) => given.some((known) => known === scope))
}
