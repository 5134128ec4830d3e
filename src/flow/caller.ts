// Who calls, and what its key's restrictions allow; pure judgements that every verb asks.
import { ServiceError } from '../base/errors.ts'
import type { InboxId, SessionId } from '../base/ids.ts'
import type { CallerRow } from '../store/accounts/keys.ts'

/** An authenticated key with its organization; of a member who is signed in, their own key and the session. */
export type Caller = CallerRow & {
  sessionId?: SessionId
  /** Where the request came from, for the audit log. */
  ip?: string
}

/** Who sends, and within which bounds: a key, or this service itself, which has none (`id` and `kind` null). */
export type SendingCaller = Pick<
  Caller,
  'organizationId' | 'limits' | 'inboxIds' | 'sendMode' | 'allowedRecipientDomains'
> & {
  id: Caller['id'] | null
  kind: Caller['kind'] | null
  /** No limit of the organization's volume counts what it sends. */
  isUncounted?: boolean
}

export type Scope =
  | 'mailbox:manage'
  | 'mailbox:read'
  | 'mailbox:send'
  | 'delivery:read'
  | 'delivery:send'
  | 'domain:manage'
  | 'webhook:manage'
  | 'validation:use'

/** Every scope that a key can hold. */
export const scopes: readonly (Scope | '*')[] = [
  'mailbox:manage',
  'mailbox:read',
  'mailbox:send',
  'delivery:read',
  'delivery:send',
  'domain:manage',
  'webhook:manage',
  'validation:use',
  '*',
]

export function hasScope(caller: Caller, scope: Scope): boolean {
  return caller.scopes.includes(scope) || caller.scopes.includes('*')
}

/** Refuses an inbox that the key is not restricted to. */
export function requireInbox(caller: Caller, inboxId: InboxId): void {
  if (caller.inboxIds && !caller.inboxIds.includes(inboxId)) throw new ServiceError('inbox_not_allowed')
}

/** Refuses what concerns the whole organization to a key that is restricted to inboxes. */
export function requireWholeOrganization(caller: Caller): void {
  if (caller.inboxIds) throw new ServiceError('inbox_not_allowed')
}
