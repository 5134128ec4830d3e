// Threads: list, show, reply.
import Type from 'typebox'
import { readInbox, readThread } from '../../flow/reading/read-mailbox.ts'
import { listThreadMessages } from '../../store/mailbox/message-pages.ts'
import { listThreads, type ThreadRow } from '../../store/mailbox/messages.ts'
import type { Api, HttpDeps } from '../api.ts'
import { answerJson } from '../json-stream.ts'
import { type Cursors, limitOf, messagePageQuery, pageQuery, readLimit } from '../lists.ts'
import { presentAccepted, presentMessage, presentThread } from '../present.ts'
import { IdempotencyHeaders, InboxParams, ThreadParams } from '../schemas/params.ts'
import { Nothing } from '../schemas/scalars.ts'
import { Acceptance, NewReply, newReplyExamples } from '../schemas/send.ts'
import { Thread, ThreadList } from '../schemas/thread.ts'
import { idempotencyOf, readAttachments, sendRefusals } from './sending.ts'

const PageQuery = Type.Object(pageQuery, { additionalProperties: false })

export function threadRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addList(api, cursors)
  addShow(api, cursors)
  addReply(api, deps)
}

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/inboxes/:inboxId/threads',
    {
      preValidation: readLimit,
      config: { scope: 'mailbox:read', refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'listThreads',
        tags: ['Threads'],
        summary: 'List the threads of an inbox',
        description: 'Threads without their messages, by newest message.',
        params: InboxParams,
        querystring: PageQuery,
        response: { 200: ThreadList.ref },
      },
    },
    async ({ caller, params, query, db }) => {
      const name = { list: `threads ${params.inboxId}`, organizationId: caller.organizationId }
      const { page, nextCursor } = await cursors.page(name, query, keyOf, async (before, limit) => {
        const inbox = await readInbox(db, caller, params.inboxId)
        return await listThreads(db, inbox.id, readKey(before), limit)
      })
      return { threads: page.map(presentThread), nextCursor }
    },
  )
}

function keyOf({ lastMessageAt, id }: ThreadRow): string {
  return `${lastMessageAt.getTime()} ${id}`
}

function readKey(key: string | null): { lastMessageAt: Date; id: string } | null {
  if (key === null) return null
  const [ms, id] = key.split(' ') as [string, string]
  return { lastMessageAt: new Date(Number(ms)), id }
}

function addShow(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/threads/:threadId',
    {
      preValidation: readLimit,
      config: {
        scope: 'mailbox:read',
        refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'],
      },
      schema: {
        operationId: 'getThread',
        tags: ['Threads'],
        summary: 'Show a thread',
        description: 'With a page of its messages, oldest first.',
        params: ThreadParams,
        querystring: Type.Object(messagePageQuery, { additionalProperties: false }),
        response: { 200: Thread.ref },
      },
    },
    async ({ caller, params, query, db }, reply) => {
      const name = { list: `thread ${params.threadId}`, organizationId: caller.organizationId }
      const afterSeq = Number(cursors.read(name, query.cursor) ?? 0)
      const thread = await readThread(db, caller, params.threadId)
      const { page, last } = await listThreadMessages(db, thread.id, afterSeq, limitOf(query))
      return answerJson(reply, {
        ...presentThread(thread),
        messages: page.map(presentMessage),
        nextCursor: last && cursors.write(name, String(last.seq)),
      })
    },
  )
}

function addReply(api: Api, { acceptance }: HttpDeps): void {
  api.post(
    '/v1/threads/:threadId/replies',
    {
      config: {
        scope: 'mailbox:send',
        largestBody: 'message',
        refusals: sendRefusals.filter((code) => code !== 'send_mode_reply_only'),
        examples: { request: newReplyExamples },
      },
      schema: {
        operationId: 'replyToThread',
        tags: ['Threads'],
        summary: 'Reply to a message of a thread',
        description:
          'Goes to the Reply-To of the target message, or to its sender if it has none. For a sent message, goes to its recipients.',
        params: ThreadParams,
        querystring: Nothing,
        headers: IdempotencyHeaders,
        body: NewReply.ref,
        response: { 202: Acceptance.ref },
      },
    },
    async (request, reply) => {
      const { body, params, caller } = request
      const answer = { ...body, attachments: readAttachments(request) }
      const accepted = await acceptance.acceptReply(caller, params.threadId, answer, idempotencyOf(request))
      reply.code(202)
      return answerJson(reply, presentAccepted(accepted))
    },
  )
}
