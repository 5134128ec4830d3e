// The walk with the types of openapi-typescript and the client openapi-fetch.
import createClient from 'openapi-fetch'
import type { paths } from './generated/openapi-typescript/api.ts'
import { readArguments, walk } from './walk.ts'

const { baseUrl, key } = readArguments()
const client = createClient<paths>({ baseUrl, headers: { 'x-api-key': key } })

/** The body of a success. */
function bodyOf<Body>({ data, error }: { data?: Body; error?: { error: string } }): Body {
  if (error) throw new Error(error.error)
  return data as Body
}

await walk({
  readScopes: async () => bodyOf(await client.GET('/v1/me')).apiKey.scopes,
  createInbox: async (displayName) => bodyOf(await client.POST('/v1/inboxes', { body: { displayName } })),
  sendMessage: async (inboxId, email, idempotencyKey) =>
    bodyOf(
      await client.POST('/v1/inboxes/{inboxId}/messages', {
        params: { path: { inboxId }, header: { 'idempotency-key': idempotencyKey } },
        body: {
          to: [{ email }],
          subject: 'Lunch on Friday?',
          text: 'At one?',
          metadata: { table: 4 },
          purpose: 'transactional',
        },
      }),
    ),
  waitForMessages: async (inboxId) => {
    const params = { path: { inboxId }, query: { after: '0', wait: 60 } }
    return bodyOf(await client.GET('/v1/inboxes/{inboxId}/messages', { params })).messages
  },
  getMessage: async (messageId) =>
    bodyOf(await client.GET('/v1/messages/{messageId}', { params: { path: { messageId } } })),
  getSource: async (messageId) => {
    const params = { path: { messageId } }
    return bodyOf(await client.GET('/v1/messages/{messageId}/source', { params, parseAs: 'text' }))
  },
  getThread: async (threadId) =>
    bodyOf(await client.GET('/v1/threads/{threadId}', { params: { path: { threadId } } })).messages,
  reply: async (threadId, targetMessageId, idempotencyKey) =>
    bodyOf(
      await client.POST('/v1/threads/{threadId}/replies', {
        params: { path: { threadId }, header: { 'idempotency-key': idempotencyKey } },
        body: { targetMessageId, text: 'Yes.' },
      }),
    ),
  listInboxes: async (cursor) =>
    bodyOf(await client.GET('/v1/inboxes', { params: { query: { limit: 1, cursor } } })),
  validate: async (email) => bodyOf(await client.POST('/v1/validate', { body: { email } })),
  suppress: async (email) => bodyOf(await client.POST('/v1/suppressions', { body: { email } })),
  deleteSuppression: async (email) => bodyOf(await client.DELETE('/v1/suppressions', { body: { email } })),
  deleteInbox: async (inboxId) =>
    bodyOf(await client.DELETE('/v1/inboxes/{inboxId}', { params: { path: { inboxId } } })),
  getMissingInbox: async (inboxId) => {
    const params = { path: { inboxId } }
    const { error, response } = await client.GET('/v1/inboxes/{inboxId}', { params })
    // @ts-expect-error The type lists every code of this operation, and this is none of them.
    if (error?.error === 'no_such_code') throw new Error(error.message)
    if (error?.error !== 'not_found') throw new Error(`404 was expected, not ${error?.error}`)
    return { status: response.status, code: error.error, message: error.message }
  },
})
