// Sends and replies over the API, each with its own idempotency key.
import type { Acceptance, Api, Inbox } from '../support/api.ts'

let keys = 0

/** Returns an idempotency key that this run has not used. */
export function nextKey(): string {
  return `sending-key-${++keys}`
}

/** Sends a message from the inbox. Throws unless it is accepted. */
export async function send(api: Api, inbox: Inbox, change: object = {}): Promise<Acceptance> {
  const body = {
    to: [{ email: 'someone@far.test', name: 'Someone' }],
    subject: 'Hello',
    text: 'There',
    ...change,
  }
  return api.want(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: nextKey(),
    body,
    status: 202,
  })
}

/** Replies and returns the answer, whatever its status. */
export function reply(api: Api, threadId: string, targetMessageId: string) {
  const call = {
    method: 'POST',
    idempotencyKey: nextKey(),
    body: { targetMessageId, text: 'Answer' },
  }
  return api.call<Acceptance & { error: string }>(`/v1/threads/${threadId}/replies`, call)
}
