// The scopes that members can give a key; the operator gives more.
import type { Schemas } from '../../api/client.ts'

export const memberScopes = [
  ...(['mailbox:read', 'mailbox:send', 'mailbox:manage', 'delivery:read'] as const),
  ...(['domain:manage', 'webhook:manage'] as const),
]
/** Only server keys have these, in organizations that the operator granted them. */
export const serverScopes = ['delivery:send', 'validation:use'] as const

export type MemberScope = Schemas['NewKey']['scopes'][number]
