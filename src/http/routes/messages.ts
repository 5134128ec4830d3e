// Messages: send, list, show, their source, delete.
import Type from 'typebox'
import { firstMessageIdAt } from '../../base/ids.ts'
import { deleteMessage } from '../../flow/mailbox/delete-message.ts'
import { readInbox, readMessage, readSource, readWords } from '../../flow/mailbox/read-mailbox.ts'
import { sameAddressKey } from '../../mail/address.ts'
import { listMessages } from '../../store/message-pages.ts'
import type { Api, HttpDeps } from '../api.ts'
import { answerJson } from '../json-stream.ts'
import { type Cursors, messagePageQuery, pageSizeOf, readLimit } from '../lists.ts'
import { presentAccepted, presentMessage, presentPage } from '../present.ts'
import { downloadHeaders } from '../schemas/downloads.ts'
import { Message, MessageList, messageExamples, sourceExample } from '../schemas/message.ts'
import { IdempotencyHeaders, InboxParams, MessageParams } from '../schemas/params.ts'
import { Email, GivenTime, Nothing, oneOf, patterned } from '../schemas/scalars.ts'
import { Acceptance, NewMessage, newMessageExamples } from '../schemas/send.ts'
import { sendStream } from '../send-stream.ts'
import { idempotencyOf, readAttachments, sendRefusals } from './sending.ts'

export function messageRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addSend(api, deps)
  addList(api, deps, cursors)
  addShow(api, deps)
  addSource(api, deps)
  addDelete(api, deps)
}

function addSend(api: Api, { acceptance }: HttpDeps): void {
  api.post(
    '/v1/inboxes/:inboxId/messages',
    {
      config: {
        scope: 'mailbox:send',
        largestBody: 'message',
        refusals: sendRefusals,
        examples: { request: newMessageExamples },
      },
      schema: {
        operationId: 'sendMessage',
        tags: ['Messages'],
        summary: 'Send a message from an inbox',
        description:
          'The 202 comes once the message is on disk; its delivery can be followed in the submission.',
        params: InboxParams,
        querystring: Nothing,
        headers: IdempotencyHeaders,
        body: NewMessage.ref,
        response: { 202: Acceptance.ref },
      },
    },
    async (request, reply) => {
      const { body, params, caller } = request
      const message = { ...body, attachments: readAttachments(request) }
      const accepted = await acceptance.acceptMessage(caller, params.inboxId, message, idempotencyOf(request))
      reply.code(202)
      return answerJson(reply, presentAccepted(accepted))
    },
  )
}

const ListQuery = Type.Object(
  {
    ...messagePageQuery,
    direction: Type.Optional(oneOf(['inbound', 'outbound'], 'Only received or only sent ones.')),
    from: Type.Optional({ ...Email, description: 'Only from this address.' }),
    since: Type.Optional({ ...GivenTime, description: 'Only from this time on.' }),
    until: Type.Optional({ ...GivenTime, description: 'Only from before this time.' }),
    q: Type.Optional(
      patterned('query', {
        minLength: 1,
        maxLength: 200,
        description:
          'Only with all of these words in subject, text, names and addresses of sender and recipients, or names of attachments. `"in quotes"` they follow each other, and `invoic*` is any word that begins so. Case and accents do not matter. A message is found a moment after it was filed or accepted.',
        examples: ['invoice "due date"'],
      }),
    ),
  },
  { additionalProperties: false },
)

function addList(api: Api, { db }: HttpDeps, cursors: Cursors): void {
  api.get(
    '/v1/inboxes/:inboxId/messages',
    {
      preValidation: readLimit,
      config: {
        scope: 'mailbox:read',
        refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found', 'page_too_large'],
      },
      schema: {
        operationId: 'listMessages',
        tags: ['Messages'],
        summary: 'List or search the messages of an inbox',
        description: 'Newest first. All filters that are given must hold.',
        params: InboxParams,
        querystring: ListQuery,
        response: { 200: MessageList.ref },
      },
    },
    async ({ caller, params, query }, reply) => {
      const name = { list: `messages ${params.inboxId}`, organizationId: caller.organizationId }
      const words = query.q === undefined ? null : readWords(query.q)
      const before = cursors.read(name, query.cursor)
      const inbox = await readInbox(db, caller, params.inboxId)
      const filter = {
        inboxId: inbox.id,
        direction: query.direction ?? null,
        from: query.from === undefined ? null : sameAddressKey(query.from),
        sinceId: query.since === undefined ? null : firstMessageIdAt(Date.parse(query.since)),
        untilId: query.until === undefined ? null : firstMessageIdAt(Date.parse(query.until)),
        words,
      }
      const { page, last } = await listMessages(db, filter, before, pageSizeOf(query))
      const nextCursor = last && cursors.write(name, last.id)
      return answerJson(reply, { messages: presentPage(page), nextCursor })
    },
  )
}

function addShow(api: Api, { db }: HttpDeps): void {
  api.get(
    '/v1/messages/:messageId',
    {
      config: {
        scope: 'mailbox:read',
        refusals: ['inbox_not_allowed', 'not_found'],
        examples: { response: messageExamples },
      },
      schema: {
        operationId: 'getMessage',
        tags: ['Messages'],
        summary: 'Show a message',
        params: MessageParams,
        querystring: Nothing,
        response: { 200: Message.ref },
      },
    },
    async ({ caller, params }, reply) =>
      answerJson(reply, presentMessage(await readMessage(db, caller, params.messageId))),
  )
}

function addSource(api: Api, { db, blobs }: HttpDeps): void {
  api.get(
    '/v1/messages/:messageId/source',
    {
      config: {
        scope: 'mailbox:read',
        refusals: ['inbox_not_allowed', 'not_found'],
        otherResponses: {
          200: {
            description: 'The bytes as received, below the trace fields.',
            contentType: 'message/rfc822',
            headers: downloadHeaders,
          },
        },
        examples: { response: { source: sourceExample } },
      },
      schema: {
        operationId: 'getMessageSource',
        tags: ['Messages'],
        summary: 'Download the source of a received message',
        description: 'The mail as it came, byte for byte, below the fields that this service wrote above it.',
        params: MessageParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      const { sizeBytes, stream } = await readSource({ db, blobs }, caller, params.messageId)
      // Stored mail must never run as a page of this origin, whatever a browser takes it for.
      reply.headers({
        'content-type': 'message/rfc822',
        'content-length': sizeBytes,
        'content-disposition': `attachment; filename="${params.messageId}.eml"; filename*=UTF-8''${params.messageId}.eml`,
        'content-security-policy': "default-src 'none'; sandbox",
        'cache-control': 'private, no-store',
      })
      return sendStream(reply, stream)
    },
  )
}

function addDelete(api: Api, { db, clock, blobs }: HttpDeps): void {
  api.delete(
    '/v1/messages/:messageId',
    {
      config: {
        scope: 'mailbox:manage',
        refusals: ['inbox_not_allowed', 'delivery_in_progress'],
        otherResponses: { 204: { description: 'It is gone.', contentType: null } },
      },
      schema: {
        operationId: 'deleteMessage',
        tags: ['Messages'],
        summary: 'Delete a message',
        description: 'Its submission stays, without content. Deleting what does not exist is 204 as well.',
        params: MessageParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      await deleteMessage({ db, clock, blobs }, caller, params.messageId)
      return reply.code(204).send()
    },
  )
}
