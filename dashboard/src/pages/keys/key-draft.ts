// A key before its creation: the form's values, their faults, and the API's form of them.
import type { Schemas } from '../../api/client.ts'
import { keys } from '../../texts/keys.ts'
import type { CallInbox } from './first-call.ts'
import { type MemberScope, memberScopes, serverScopes } from './member-scopes.ts'

export interface KeyDraft {
  name: string
  kind: NonNullable<Schemas['NewKey']['kind']>
  scopes: readonly MemberScope[]
  /** Null: all inboxes. */
  inboxes: readonly CallInbox[] | null
  ips: string
  sendMode: 'new_and_reply' | 'reply_only'
  recipientDomains: string
  confirmNewRecipients: boolean
  requestsPerMinute: string
  expiresInDays: number
}

export type Preset = keyof typeof keys.preset

export const emptyDraft: KeyDraft = {
  name: '',
  kind: 'dashboard',
  scopes: ['mailbox:send'],
  inboxes: null,
  ips: '',
  sendMode: 'new_and_reply',
  recipientDomains: '',
  confirmNewRecipients: false,
  requestsPerMinute: '',
  expiresInDays: 30,
}

const presetScopes: Record<Exclude<Preset, 'own'>, readonly MemberScope[]> = {
  send: ['mailbox:send'],
  agent: ['mailbox:read', 'mailbox:send'],
  server: [...serverScopes, 'delivery:read'],
  all: memberScopes,
}

const longestDays = 30

/** Returns the preset that these choices equal. */
export function presetOf({ kind, scopes, inboxes, sendMode }: KeyDraft): Preset {
  const isAlike = (wanted: readonly string[]) =>
    wanted.length === scopes.length && wanted.every((scope) => scopes.includes(scope as MemberScope))
  if (isAlike(presetScopes.agent) && inboxes && kind === 'agent' && sendMode === 'reply_only') return 'agent'
  if (kind === 'server') return isAlike(presetScopes.server) ? 'server' : 'own'
  if (isAlike(presetScopes.send)) return 'send'
  return isAlike(presetScopes.all) ? 'all' : 'own'
}

export function withPreset(given: KeyDraft, preset: Preset): KeyDraft {
  if (preset === 'own') return { ...given, scopes: [] }
  const scopes = presetScopes[preset]
  if (preset === 'server')
    return { ...given, scopes, kind: 'server', sendMode: 'new_and_reply', inboxes: null, expiresInDays: 365 }
  const draft = { ...given, expiresInDays: Math.min(given.expiresInDays, longestDays) }
  if (preset === 'agent')
    return { ...draft, scopes, kind: 'agent', sendMode: 'reply_only', inboxes: draft.inboxes ?? [] }
  return { ...draft, scopes, kind: 'dashboard', sendMode: 'new_and_reply', inboxes: null }
}

export interface KeyFaults {
  name?: string
  scopes?: string
  inboxes?: string
}

export function faultsOf({ name, scopes, inboxes }: KeyDraft): KeyFaults {
  return {
    ...(name.trim() ? {} : { name: keys.nameMissing }),
    ...(scopes.length ? {} : { scopes: keys.scopesMissing }),
    ...(inboxes?.length === 0 ? { inboxes: keys.inboxesMissing } : {}),
  }
}

export function bodyOf(draft: KeyDraft): Schemas['NewKey'] {
  const rate = Number(draft.requestsPerMinute)
  return {
    name: draft.name.trim(),
    kind: draft.kind,
    scopes: [...draft.scopes],
    inboxIds: draft.inboxes?.map(({ id }) => id) ?? null,
    allowedIps: linesOf(draft.ips),
    sendMode: draft.sendMode,
    allowedRecipientDomains: linesOf(draft.recipientDomains),
    confirmNewRecipients: draft.confirmNewRecipients,
    requestsPerMinute: draft.requestsPerMinute.trim() && Number.isInteger(rate) ? rate : null,
    expiresInDays: draft.expiresInDays,
  }
}

function linesOf(text: string): string[] | null {
  const lines = text.split(/[\s,;]+/).filter(Boolean)
  return lines.length > 0 ? [...new Set(lines)] : null
}
