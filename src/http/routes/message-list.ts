// The messages of an inbox: list, search, and wait for them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { ServiceError } from '../../base/errors.ts'
import { firstMessageIdAt, type InboxId } from '../../base/ids.ts'
import { findPosition, readFollowing, readInbox, readWords } from '../../flow/reading/read-mailbox.ts'
import { sameAddressKey } from '../../mail/address.ts'
import { listMessages, type MessageFilter, type MessagePage } from '../../store/mailbox/message-pages.ts'
import type { Api, HttpDeps } from '../api.ts'
import { readmit } from '../caller.ts'
import { answerJson } from '../json-stream.ts'
import { type Cursors, type ListName, limitOf, messagePageQuery, readLimit, readNumber } from '../lists.ts'
import { presentMessage } from '../present.ts'
import { MessageList } from '../schemas/message.ts'
import { InboxParams } from '../schemas/params.ts'
import { Email, GivenTime, oneOf, patterned } from '../schemas/scalars.ts'
import { maxWaitSeconds } from '../stream/message-waits.ts'

/** The filters of a list of messages. */
export const messageFilters = {
  direction: Type.Optional(oneOf(['inbound', 'outbound'], 'Only received or only sent ones.')),
  from: Type.Optional({ ...Email, description: 'Only messages from this address.' }),
  since: Type.Optional({ ...GivenTime, description: 'Only messages at or after this time.' }),
  until: Type.Optional({ ...GivenTime, description: 'Only messages before this time.' }),
  q: Type.Optional(
    patterned('query', {
      minLength: 1,
      maxLength: 200,
      description:
        'Only messages with all of these words in subject, text, names and addresses of sender and recipients, or attachment names. `"in quotes"` matches a phrase, and `invoic*` matches words with that beginning. Case and accents do not matter. A message can be found a moment after it is stored or accepted. The first search of an inbox covers the newest messages, as many as can be indexed within a second. Older messages follow: see `search-complete`.',
      examples: ['invoice "due date"'],
    }),
  ),
}

const ListQuery = Type.Object(
  {
    ...messagePageQuery,
    ...messageFilters,
    after: Type.Optional(
      patterned('messageIdOrZero', {
        description:
          'Only messages stored after this message, oldest first. New messages always come after those already read. `0`: from the beginning. The id of a message stays valid for 30 days after its deletion. Can be combined only with the filter `direction`.',
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxWaitSeconds,
        default: 0,
        description:
          'With `after`: if there is no newer message, waits up to this many seconds for one, then returns an empty list. A key can have up to 250 waiting requests, an organization 1,000.',
      }),
    ),
  },
  { additionalProperties: false },
)
type ListQuery = Static<typeof ListQuery>

export function addMessageList(api: Api, deps: HttpDeps, cursors: Cursors): void {
  api.get(
    '/v1/inboxes/:inboxId/messages',
    {
      preValidation: async (request) => {
        await readLimit(request)
        readNumber(request, 'wait')
      },
      config: {
        scope: 'mailbox:read',
        longestWaitMs: maxWaitSeconds * 1_000,
        refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'],
        headers: {
          'search-complete':
            'With `q`: `?1` if every message was searched. `?0` if older messages are still being indexed, or if `direction` or `from` ended the search at 5,000 messages that have the words. `nextCursor` then leads to the older messages (RFC 8941).',
        },
      },
      schema: {
        operationId: 'listMessages',
        tags: ['Messages'],
        summary: 'List, search or wait for the messages of an inbox',
        description:
          'Newest first. A message must match all given filters. With `after` the order is oldest first, and `wait` waits for the next message.',
        params: InboxParams,
        querystring: ListQuery,
        response: { 200: MessageList.ref },
      },
    },
    async (request, reply) => {
      const { caller, params, query, db } = request
      requireAgreeing(query)
      const list = query.after === undefined ? 'messages' : 'messages after'
      const name = { list: `${list} ${params.inboxId}`, organizationId: caller.organizationId }
      if (query.after !== undefined) {
        const { page, last } = await readAfter(deps, request, reply, cursors.read(name, query.cursor))
        return answerJson(reply, { messages: page.map(presentMessage), nextCursor: nextOf(name, last?.seq) })
      }
      const words = query.q === undefined ? null : readWords(query.q)
      const before = cursors.read(name, query.cursor)
      const inbox = await readInbox(db, caller, params.inboxId)
      const isIndexed = words === null || (await deps.inboxSearches.prepare(inbox))
      const find = () => listMessages(db, filterOf(inbox.id, query, words), before, limitOf(query))
      const { page, last, isCut } = await (words === null
        ? find()
        : deps.inboxSearches.run(caller.organizationId, find))
      // RFC 8941 3.3.6: a boolean is `?1` or `?0`.
      if (words !== null) reply.header('search-complete', isIndexed && !isCut ? '?1' : '?0')
      return answerJson(reply, { messages: page.map(presentMessage), nextCursor: nextOf(name, last?.id) })
    },
  )

  function nextOf(name: ListName, position: string | number | undefined): string | null {
    return position === undefined ? null : cursors.write(name, String(position))
  }
}

const otherFilters = ['from', 'since', 'until', 'q'] as const

/** Refuses filters together with `after`, which lists all messages after a position, and `wait` without `after`. */
function requireAgreeing(query: ListQuery): void {
  if (query.after === undefined) {
    if (query.wait !== undefined) throw new ServiceError('invalid_request', '/wait requires /after')
    return
  }
  const other = otherFilters.find((name) => query[name] !== undefined)
  if (other !== undefined)
    throw new ServiceError('invalid_request', `/${other} cannot be combined with /after`)
}

type GivenFilters = Partial<Record<'from' | 'since' | 'until', string>> & {
  direction?: 'inbound' | 'outbound'
}

/** Returns the filter of a list's query, whose words were read already. */
export function filterOf(inboxId: InboxId, query: GivenFilters, words: string | null): MessageFilter {
  return {
    inboxId,
    direction: query.direction ?? null,
    from: query.from === undefined ? null : sameAddressKey(query.from),
    sinceId: query.since === undefined ? null : firstMessageIdAt(Date.parse(query.since)),
    untilId: query.until === undefined ? null : firstMessageIdAt(Date.parse(query.until)),
    words,
  }
}

type WaitDeps = Pick<HttpDeps, 'clock' | 'authenticate' | 'messageWaits'>
type ListRequest = FastifyRequest<{ Params: Static<typeof InboxParams>; Querystring: ListQuery }>

/**
 * Returns the page after the cursor, or without a cursor after `after`. Waits up to `wait` seconds for the first
 * message.
 */
async function readAfter(
  deps: WaitDeps,
  request: ListRequest,
  { raw: response }: FastifyReply,
  cursor: string | null,
): Promise<MessagePage> {
  const { db } = request
  const { after = '0', wait = 0, direction = null } = request.query
  const { id: inboxId } = await readInbox(db, request.caller, request.params.inboxId)
  const afterSeq = cursor === null ? await findPosition(db, inboxId, after) : Number(cursor)
  const read = () =>
    readFollowing(db, request.caller, { inboxId, direction, afterSeq }, limitOf(request.query))
  const first = await read()
  if (wait === 0 || first.page.length > 0) return first
  const fromMs = performance.now()
  const watched = { inboxId, afterSeq }
  const waiting = { caller: request.caller, watched, waitMs: wait * 1_000, response }
  const found = await deps.messageWaits.wait(waiting, async () => {
    await readmit(deps, request)
    const found = await read()
    return found.page.length > 0 ? found : null
  })
  request.waitedMs = performance.now() - fromMs
  return found ?? first
}
