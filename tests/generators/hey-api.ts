// The walk with the client of @hey-api/openapi-ts.
import { client } from './generated/hey-api/client.gen.ts'
import {
  createInbox,
  createSuppression,
  deleteInbox,
  deleteSuppression,
  getInbox,
  getMessage,
  getMessageSource,
  getProfile,
  getThread,
  listInboxes,
  listMessages,
  replyToThread,
  sendMessage,
  validateAddress,
} from './generated/hey-api/index.ts'
import { readArguments, walk } from './walk.ts'

const { baseUrl, key } = readArguments()
client.setConfig({ baseUrl, auth: key, throwOnError: true })
const throwOnError = true

await walk({
  readScopes: async () => (await getProfile({ throwOnError })).data.apiKey.scopes,
  createInbox: async (displayName) => (await createInbox({ body: { displayName }, throwOnError })).data,
  sendMessage: async (inboxId, email, idempotencyKey) => {
    const { data } = await sendMessage({
      path: { inboxId },
      headers: { 'idempotency-key': idempotencyKey },
      body: {
        to: [{ email }],
        subject: 'Lunch on Friday?',
        text: 'At one?',
        metadata: { table: 4 },
        purpose: 'transactional',
      },
      throwOnError,
    })
    return data
  },
  waitForMessages: async (inboxId) => {
    const query = { after: '0', wait: 60 }
    return (await listMessages({ path: { inboxId }, query, throwOnError })).data.messages
  },
  getMessage: async (messageId) => (await getMessage({ path: { messageId }, throwOnError })).data,
  getSource: async (messageId) => {
    const { data } = await getMessageSource({ path: { messageId }, parseAs: 'blob', throwOnError })
    return await data.text()
  },
  getThread: async (threadId) => (await getThread({ path: { threadId }, throwOnError })).data.messages,
  reply: async (threadId, targetMessageId, idempotencyKey) => {
    const headers = { 'idempotency-key': idempotencyKey }
    const body = { targetMessageId, text: 'Yes.' }
    return (await replyToThread({ path: { threadId }, headers, body, throwOnError })).data
  },
  listInboxes: async (cursor) => (await listInboxes({ query: { limit: 1, cursor }, throwOnError })).data,
  validate: async (email) => (await validateAddress({ body: { email }, throwOnError })).data,
  suppress: async (email) => (await createSuppression({ body: { email }, throwOnError })).data,
  deleteSuppression: async (email) => void (await deleteSuppression({ body: { email }, throwOnError })),
  deleteInbox: async (inboxId) => void (await deleteInbox({ path: { inboxId }, throwOnError })),
  getMissingInbox: async (inboxId) => {
    const { error, response } = await getInbox({ path: { inboxId }, throwOnError: false })
    // @ts-expect-error The type lists every code of this operation, and this is none of them.
    if (error?.error === 'no_such_code') throw new Error(error.message)
    if (error?.error !== 'not_found') throw new Error(`404 was expected, not ${error?.error}`)
    return { status: response?.status ?? 0, code: error.error, message: error.message }
  },
})
