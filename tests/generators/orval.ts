// The walk with the fetch client of orval.
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
} from './generated/orval/api.ts'
import { readArguments, walk } from './walk.ts'

// orval.config.js has the address of the service.
const { key } = readArguments()
const options = { headers: { 'x-api-key': key } }
const withKey = (idempotencyKey: string) => ({
  headers: { 'x-api-key': key, 'idempotency-key': idempotencyKey },
})

/** The answer with this status, whose type then says which body it has. */
function want<Answer extends { status: number }, const Status extends Answer['status']>(
  answer: Answer,
  status: Status,
): Extract<Answer, { status: Status }> {
  if (answer.status !== status) throw new Error(`${status} was expected, not ${answer.status}`)
  return answer as Extract<Answer, { status: Status }>
}

await walk({
  readScopes: async () => want(await getProfile(options), 200).data.apiKey.scopes,
  createInbox: async (displayName) => want(await createInbox({ displayName }, options), 201).data,
  sendMessage: async (inboxId, email, idempotencyKey) => {
    const message = {
      to: [{ email }],
      subject: 'Lunch on Friday?',
      text: 'At one?',
      metadata: { table: 4 },
      purpose: 'transactional' as const,
    }
    return want(await sendMessage(inboxId, message, withKey(idempotencyKey)), 202).data
  },
  waitForMessages: async (inboxId) =>
    want(await listMessages(inboxId, { after: '0', wait: 60 }, options), 200).data.messages,
  getMessage: async (messageId) => want(await getMessage(messageId, options), 200).data,
  getSource: async (messageId) => await want(await getMessageSource(messageId, options), 200).data.text(),
  getThread: async (threadId) => want(await getThread(threadId, {}, options), 200).data.messages,
  reply: async (threadId, targetMessageId, idempotencyKey) => {
    const reply = { targetMessageId, text: 'Yes.' }
    return want(await replyToThread(threadId, reply, withKey(idempotencyKey)), 202).data
  },
  listInboxes: async (cursor) => want(await listInboxes({ limit: 1, cursor }, options), 200).data,
  validate: async (email) => want(await validateAddress({ email }, options), 200).data,
  suppress: async (email) => want(await createSuppression({ email }, options), 201).data,
  deleteSuppression: async (email) => void want(await deleteSuppression({ email }, options), 204),
  deleteInbox: async (inboxId) => void want(await deleteInbox(inboxId, options), 204),
  getMissingInbox: async (inboxId) => {
    const { status, data } = want(await getInbox(inboxId, options), 404)
    // @ts-expect-error The type lists every code of this status, and this is none of them.
    if (data.error === 'no_such_code') throw new Error(data.message)
    return { status, code: data.error, message: data.message }
  },
})
