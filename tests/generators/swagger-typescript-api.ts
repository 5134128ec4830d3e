// The walk with the client of swagger-typescript-api.
import { Api } from './generated/swagger-typescript-api/Api.ts'
import { readArguments, walk } from './walk.ts'

const { baseUrl, key } = readArguments()
const { v1 } = new Api({ baseUrl, baseApiParams: { headers: { 'x-api-key': key } } })
// This generator leaves out parameters in headers.
const withKey = (idempotencyKey: string) => ({
  headers: { 'x-api-key': key, 'idempotency-key': idempotencyKey },
})

await walk({
  readScopes: async () => (await v1.getProfile()).data.apiKey.scopes,
  createInbox: async (displayName) => (await v1.createInbox({ displayName })).data,
  sendMessage: async (inboxId, email, idempotencyKey) => {
    const message = {
      to: [{ email }],
      subject: 'Lunch on Friday?',
      text: 'At one?',
      metadata: { table: 4 },
      purpose: 'transactional' as const,
    }
    return (await v1.sendMessage(inboxId, message, withKey(idempotencyKey))).data
  },
  waitForMessages: async (inboxId) =>
    (await v1.listMessages(inboxId, { after: '0', wait: 60 })).data.messages,
  getMessage: async (messageId) => (await v1.getMessage(messageId)).data,
  // An answer is also a Response. This generator reads only JSON and text by itself.
  getSource: async (messageId) => await (await v1.getMessageSource(messageId)).text(),
  getThread: async (threadId) => (await v1.getThread(threadId)).data.messages,
  reply: async (threadId, targetMessageId, idempotencyKey) => {
    const reply = { targetMessageId, text: 'Yes.' }
    return (await v1.replyToThread(threadId, reply, withKey(idempotencyKey))).data
  },
  listInboxes: async (cursor) => (await v1.listInboxes({ limit: 1, cursor })).data,
  validate: async (email) => (await v1.validateAddress({ email })).data,
  suppress: async (email) => (await v1.createSuppression({ email })).data,
  deleteSuppression: async (email) => void (await v1.deleteSuppression({ email })),
  deleteInbox: async (inboxId) => void (await v1.deleteInbox(inboxId)),
  getMissingInbox: async (inboxId) => {
    const found = v1.getInbox(inboxId)
    // A rejection has no type, but the type of the answer has that of the error.
    const { status, error } = await found.catch((refused: Awaited<typeof found>) => refused)
    // @ts-expect-error The type lists every code of this operation, and this is none of them.
    if (error.error === 'no_such_code') throw new Error(error.message)
    if (error.error !== 'not_found') throw new Error(`404 was expected, not ${error.error}`)
    return { status, code: error.error, message: error.message }
  },
})
