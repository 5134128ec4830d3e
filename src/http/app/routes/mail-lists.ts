// The dashboard's mail lists: inboxes by their newest message, conversations and search results of one inbox or of all.
import Type from 'typebox'
import { readInbox, readWords } from '../../../flow/reading/read-mailbox.ts'
import { findMail } from '../../../flow/searching/find-mail.ts'
import { type ActiveInboxRow, listInboxesByActivity } from '../../../store/mailbox/inboxes.ts'
import { listConversations, type MailRow } from '../../../store/mailbox/mail-rows.ts'
import type { Api, AppDeps } from '../../api.ts'
import { Cursors, limitOf, pageQuery, readLimit } from '../../lists.ts'
import { presentInbox, presentMailbox } from '../../present.ts'
import { filterOf, messageFilters } from '../../routes/message-list.ts'
import { InboxIdText, patterned } from '../../schemas/scalars.ts'
import { ActiveInboxList, ConversationList, FoundMail } from '../schemas/mail-lists.ts'

const scope = 'mailbox:read'
const ofInbox = {
  ...pageQuery,
  inboxId: Type.Optional({ ...InboxIdText, description: 'Only of this inbox; omitted: of all.' }),
}

export function mailListRoutes(api: Api, deps: AppDeps): void {
  const cursors = new Cursors(deps.secretBox)
  addInboxes(api, cursors)
  addThreads(api, cursors)
  addMessages(api, deps, cursors)
}

const InboxQuery = Type.Object(
  {
    ...pageQuery,
    q: Type.Optional(
      patterned('oneLine', {
        minLength: 1,
        maxLength: 200,
        description: 'A part of the address or the name.',
      }),
    ),
  },
  { additionalProperties: false },
)

function addInboxes(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/mail/inboxes',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor'] },
      schema: {
        operationId: 'listActiveInboxes',
        tags: ['Inboxes'],
        summary: 'List inboxes by their newest message',
        description: 'Inboxes without mail come last.',
        querystring: InboxQuery,
        response: { 200: ActiveInboxList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId, inboxIds: ids } = caller
      const name = { list: 'active inboxes', organizationId }
      const filter = { organizationId, ids, text: query.q ?? null }
      const { page, nextCursor } = await cursors.page(name, query, inboxKey, (key, limit) =>
        listInboxesByActivity(db, filter, readKey(key), limit),
      )
      const inboxes = page.map((row) => ({
        inbox: presentInbox(row),
        lastMessageAt: row.lastMessageAt?.toISOString() ?? null,
      }))
      return { inboxes, nextCursor }
    },
  )
}

const ThreadQuery = Type.Object(ofInbox, { additionalProperties: false })

function addThreads(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/mail/threads',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'listConversations',
        tags: ['Threads'],
        summary: 'List the conversations of an inbox, or of all, with their newest messages',
        querystring: ThreadQuery,
        response: { 200: ConversationList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId, inboxIds } = caller
      const { inboxId } = query
      const name = { list: `conversations ${inboxId ?? 'of all'}`, organizationId }
      const { page, nextCursor } = await cursors.page(name, query, threadKey, async (key, limit) => {
        const ids = inboxId === undefined ? inboxIds : [(await readInbox(db, caller, inboxId)).id]
        return await listConversations(db, { organizationId, inboxIds: ids }, readKey(key), limit)
      })
      return { rows: page.map(present), nextCursor }
    },
  )
}

const FoundQuery = Type.Object(
  {
    ...ofInbox,
    ...messageFilters,
    q: Type.Optional(patterned('query', { minLength: 1, maxLength: 200, description: 'The words.' })),
  },
  { additionalProperties: false },
)

function addMessages(api: Api, { inboxSearches }: AppDeps, cursors: Cursors): void {
  api.get(
    '/v1/mail/messages',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'findMessages',
        tags: ['Messages'],
        summary: 'Search an inbox, or all',
        querystring: FoundQuery,
        response: { 200: FoundMail.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { inboxId = null, q } = query
      const name = { list: `found ${inboxId ?? 'in all'}`, organizationId: caller.organizationId }
      const words = q === undefined ? null : readWords(q)
      const { rows, last, isComplete, isIndexing } = await findMail({ db, inboxSearches }, caller, {
        inbox: inboxId === null ? null : await readInbox(db, caller, inboxId),
        filterOf: (id) => filterOf(id, query, words),
        before: cursors.read(name, query.cursor),
        limit: limitOf(query),
      })
      const nextCursor = last === null ? null : cursors.write(name, last)
      return { rows: rows.map(present), complete: isComplete, indexing: isIndexing, nextCursor }
    },
  )
}

function inboxKey({ lastMessageAt, id }: ActiveInboxRow): string {
  return `${lastMessageAt?.getTime() ?? 0} ${id}`
}

function threadKey({ at, threadId }: MailRow): string {
  return `${at.getTime()} ${threadId}`
}

function readKey(key: string | null): { at: Date; id: string } | null {
  if (key === null) return null
  const [ms, id] = key.split(' ') as [string, string]
  return { at: new Date(Number(ms)), id }
}

function present({ sender, to, snippet, at, ...row }: MailRow) {
  return {
    ...row,
    from: presentMailbox(sender),
    to: to.map(presentMailbox),
    snippet: snippet.replace(/\s+/g, ' ').trim(),
    at: at.toISOString(),
  }
}
