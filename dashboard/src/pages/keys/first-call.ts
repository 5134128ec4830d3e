// The first call with a new key: works unchanged, within the key's rights and restrictions, against this origin.
import type { Key } from './queries.ts'

export interface CallInbox {
  id: string
  address: string
}

interface FirstCallInput {
  origin: string
  secret: string
  key: Pick<Key, 'scopes' | 'sendMode' | 'allowedRecipientDomains'>
  /** An inbox that the key reaches, or null. */
  inbox: CallInbox | null
}

export function firstCall({ origin, secret, key, inbox }: FirstCallInput): string {
  const get = (path: string) => `curl "${origin}${path}" -H 'x-api-key: ${secret}'`
  const may = (scope: string) => key.scopes.includes('*') || key.scopes.includes(scope)
  if (inbox && may('mailbox:send') && key.sendMode === 'new_and_reply')
    return sendCall({ origin, secret, inbox, to: recipientOf(key, inbox) })
  if (inbox && may('mailbox:read')) return get(`/v1/inboxes/${inbox.id}/messages?limit=5`)
  if (may('mailbox:read')) return get('/v1/inboxes')
  if (may('delivery:read')) return get('/v1/submissions?limit=5')
  if (may('domain:manage')) return get('/v1/domains')
  if (may('webhook:manage')) return get('/v1/webhooks')
  return get('/v1/me')
}

/** Returns the inbox's own address if the key may send to it, so that the message arrives in view. */
function recipientOf(
  { allowedRecipientDomains }: Pick<Key, 'allowedRecipientDomains'>,
  { address }: CallInbox,
): string {
  const domain = address.slice(address.indexOf('@') + 1)
  const [first] = allowedRecipientDomains ?? []
  return !first || allowedRecipientDomains?.includes(domain) ? address : `hello@${first}`
}

function sendCall({
  origin,
  secret,
  inbox,
  to,
}: {
  origin: string
  secret: string
  inbox: CallInbox
  to: string
}) {
  const body = JSON.stringify({ to: [{ email: to }], subject: 'Hello', text: 'Hello from Posthorn.' })
  return `curl -X POST "${origin}/v1/inboxes/${inbox.id}/messages" \\
  -H 'x-api-key: ${secret}' -H 'content-type: application/json' \\
  -H "idempotency-key: first-call-$(date +%s)" \\
  -d '${body}'`
}
