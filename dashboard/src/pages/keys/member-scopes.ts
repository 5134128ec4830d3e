// The scopes that members can give a key; the operator gives more.
export const memberScopes = [
  ...(['mailbox:read', 'mailbox:send', 'mailbox:manage', 'delivery:read'] as const),
  ...(['domain:manage', 'webhook:manage'] as const),
]
export type MemberScope = (typeof memberScopes)[number]
