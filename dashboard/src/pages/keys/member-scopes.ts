// The scopes that members can give a key, which are fewer than those that the operator can give.
import type { Schemas } from '../../api/client.ts'

export const memberScopes = [
  ...(['mailbox:read', 'mailbox:send', 'mailbox:manage', 'delivery:read'] as const),
  ...(['domain:manage', 'webhook:manage'] as const),
]
/** Only server keys can have these, in organizations that the operator has allowed them. */
export const serverScopes = ['delivery:send', 'validation:use'] as const

export type MemberScope = Schemas['NewKey']['scopes'][number]
