// The caller of a request and the restrictions of its key: pure checks that every operation uses.
import { ServiceError } from '../base/errors.ts'
import type { InboxId, SessionId } from '../base/ids.ts'
import type { CallerRow } from '../store/accounts/keys.ts'

/** An authenticated key with its organization. For a signed-in member: the member's own key and the session. */
export type Caller = CallerRow & {
  sessionId?: SessionId
  /** The IP address of the request, for the audit log. */
  ip?: string
}

/** A sender and its limits: a key, or this service itself, which has no key (`id` and `kind` null). */
export type SendingCaller = Pick<
  Caller,
  'organizationId' | 'limits' | 'inboxIds' | 'sendMode' | 'allowedRecipientDomains' | 'confirmNewRecipients'
> & {
  id: Caller['id'] | null
  kind: Caller['kind'] | null
  /** Its mail does not count against the organization's volume limits. */
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

export function hasScope({ scopes }: Pick<Caller, 'scopes'>, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('*')
}

/** Refuses an inbox that the key is not restricted to. */
export function requireInbox(caller: Caller, inboxId: InboxId): void {
  if (caller.inboxIds && !caller.inboxIds.includes(inboxId)) throw new ServiceError('inbox_not_allowed')
}

/** Refuses operations on the whole organization for a key that is restricted to inboxes. */
export function requireWholeOrganization(caller: Caller): void {
  if (caller.inboxIds) throw new ServiceError('inbox_not_allowed')
}
