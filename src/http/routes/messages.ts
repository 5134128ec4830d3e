// Messages: send, show, their source and header, delete.
import { deleteMessage } from '../../flow/mailbox/delete-message.ts'
import { readHeader } from '../../flow/reading/read-header.ts'
import { readMessage, readSource } from '../../flow/reading/read-mailbox.ts'
import { sendStream } from '../../web/send-stream.ts'
import type { Api, HttpDeps } from '../api.ts'
import { answerJson } from '../json-stream.ts'
import type { Cursors } from '../lists.ts'
import { presentAccepted, presentHeader, presentMessage } from '../present.ts'
import { downloadHeaders } from '../schemas/downloads.ts'
import { Message, MessageHeader, messageExamples, sourceExample } from '../schemas/message.ts'
import { IdempotencyHeaders, InboxParams, MessageParams } from '../schemas/params.ts'
import { Nothing } from '../schemas/scalars.ts'
import { Acceptance, NewMessage, newMessageExamples } from '../schemas/send.ts'
import { addMessageList } from './message-list.ts'
import { idempotencyOf, readAttachments, sendRefusals } from './sending.ts'

export function messageRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addSend(api, deps)
  addMessageList(api, deps, cursors)
  addShow(api)
  addSource(api, deps)
  addHeader(api, deps)
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
        description: 'Returns 202 once the message is on disk. The submission shows its delivery.',
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

function addShow(api: Api): void {
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
    async ({ caller, params, db }, reply) =>
      answerJson(reply, presentMessage(await readMessage(db, caller, params.messageId))),
  )
}

function addSource(api: Api, { blobs }: HttpDeps): void {
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
        description: 'The mail as received, byte for byte, below the trace fields of this service.',
        params: MessageParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params, db }, reply) => {
      const { sizeBytes, stream } = await readSource({ db, blobs }, caller, params.messageId)
      // Stored mail must never run as a page of this origin, whatever type a browser guesses.
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

function addHeader(api: Api, { blobs }: HttpDeps): void {
  api.get(
    '/v1/messages/:messageId/headers',
    {
      config: { scope: 'mailbox:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getMessageHeaders',
        tags: ['Messages'],
        summary: 'Show the header fields of a received message',
        description: 'The header fields of the source, each in raw and in decoded form.',
        params: MessageParams,
        querystring: Nothing,
        response: { 200: MessageHeader.ref },
      },
    },
    async ({ caller, params, db }, reply) => {
      const header = await readHeader({ db, blobs }, caller, params.messageId)
      return answerJson(reply, presentHeader(header), header.heldBytes)
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
        otherResponses: { 204: { description: 'Deleted.', contentType: null } },
      },
      schema: {
        operationId: 'deleteMessage',
        tags: ['Messages'],
        summary: 'Delete a message',
        description:
          "The message's submission stays, without content. Returns 204 for an unknown message as well.",
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
