// Inboxes: open, list, show, export, delete.
import Type from 'typebox'
import { requestHash } from '../../flow/idempotency.ts'
import { deleteInbox } from '../../flow/mailbox/delete-inbox.ts'
import { openInbox } from '../../flow/mailbox/open-inbox.ts'
import { exportPage, readInbox } from '../../flow/reading/read-mailbox.ts'
import { listInboxes } from '../../store/mailbox/inboxes.ts'
import type { Api, HttpDeps } from '../api.ts'
import { answerJson } from '../json-stream.ts'
import { byId, type Cursors, limitOf, messagePageQuery, pageQuery, readLimit } from '../lists.ts'
import { presentInbox, presentMessage } from '../present.ts'
import { Inbox, InboxExport, InboxList, NewInbox } from '../schemas/inbox.ts'
import { InboxParams, OptionalIdempotencyHeaders } from '../schemas/params.ts'
import { Nothing, patterned, Uuid } from '../schemas/scalars.ts'

export function inboxRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addOpen(api, deps)
  addList(api, cursors)
  addShow(api)
  addDelete(api, deps)
  addExport(api, deps, cursors)
}

function addOpen(api: Api, { db, clock, settings: { managedDomain } }: HttpDeps): void {
  api.post(
    '/v1/inboxes',
    {
      // The local part is matched in lower case. Only ASCII is folded, so that no other character becomes an ASCII letter.
      preValidation: async ({ body }) => {
        const asked = body as { localPart?: unknown } | null | undefined
        if (typeof asked?.localPart !== 'string') return
        asked.localPart = asked.localPart.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
      },
      config: {
        scope: 'mailbox:manage',
        refusals: [
          ...([
            'reserved_local_part',
            'invalid_idempotency_key',
            'inbox_not_allowed',
            'managed_allowance_exhausted',
          ] as const),
          ...([
            'limit_reached',
            'not_found',
            'address_taken',
            'domain_not_verified',
            'idempotency_key_reused',
          ] as const),
        ],
      },
      schema: {
        operationId: 'createInbox',
        tags: ['Inboxes'],
        summary: 'Create an inbox',
        description:
          'Creates an inbox on the managed domain, or with `domainId` on your verified domain. With an `idempotency-key`, a retry returns the inbox of the first request.',
        querystring: Nothing,
        headers: OptionalIdempotencyHeaders,
        body: NewInbox.ref,
        response: { 201: Inbox.ref },
      },
    },
    async (request, reply) => {
      const key = request.headers['idempotency-key']
      const idempotency = key === undefined ? null : { key, requestHash: requestHash({}, request.body) }
      const inbox = await openInbox({ db, clock, managedDomain }, request.caller, request.body, idempotency)
      return reply.code(201).send(presentInbox(inbox))
    },
  )
}

const ListQuery = Type.Object(
  {
    ...pageQuery,
    domainId: Type.Optional({ ...Uuid, description: 'Only inboxes on this domain.' }),
    q: Type.Optional(
      patterned('oneLine', {
        minLength: 1,
        maxLength: 200,
        description: 'Only inboxes whose address or display name contains this text.',
      }),
    ),
  },
  { additionalProperties: false },
)

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/inboxes',
    {
      preValidation: readLimit,
      config: { scope: 'mailbox:read', refusals: ['invalid_cursor'] },
      schema: {
        operationId: 'listInboxes',
        tags: ['Inboxes'],
        summary: 'List inboxes',
        description: 'Newest first. A key that is restricted to inboxes sees only those.',
        querystring: ListQuery,
        response: { 200: InboxList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId, inboxIds } = caller
      const filter = {
        organizationId,
        ids: inboxIds,
        domainId: query.domainId ?? null,
        text: query.q ?? null,
      }
      const name = { list: 'inboxes', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, (before, limit) =>
        listInboxes(db, filter, before, limit),
      )
      return { inboxes: page.map(presentInbox), nextCursor }
    },
  )
}

function addShow(api: Api): void {
  api.get(
    '/v1/inboxes/:inboxId',
    {
      config: { scope: 'mailbox:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getInbox',
        tags: ['Inboxes'],
        summary: 'Show an inbox',
        params: InboxParams,
        querystring: Nothing,
        response: { 200: Inbox.ref },
      },
    },
    async ({ caller, params, db }) => presentInbox(await readInbox(db, caller, params.inboxId)),
  )
}

function addDelete(api: Api, { db, clock }: HttpDeps): void {
  api.delete(
    '/v1/inboxes/:inboxId',
    {
      config: {
        scope: 'mailbox:manage',
        refusals: ['inbox_not_allowed', 'delivery_in_progress'],
        otherResponses: { 204: { description: 'Deleted.', contentType: null } },
      },
      schema: {
        operationId: 'deleteInbox',
        tags: ['Inboxes'],
        summary: 'Delete an inbox and its mail',
        description: "Cancels the inbox's waiting deliveries. Returns 204 for an unknown inbox as well.",
        params: InboxParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      await deleteInbox({ db, clock }, caller, params.inboxId)
      return reply.code(204).send()
    },
  )
}

function addExport(api: Api, { clock }: HttpDeps, cursors: Cursors): void {
  api.get(
    '/v1/inboxes/:inboxId/export',
    {
      preValidation: readLimit,
      config: {
        scope: 'mailbox:read',
        refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found', 'inbox_deleted', 'page_too_large'],
      },
      schema: {
        operationId: 'exportInbox',
        tags: ['Inboxes'],
        summary: 'Export an inbox',
        description:
          'Returns the inbox and its messages, oldest first, page by page. Mail that arrives during the export is on a later page. Returns 410 for 30 days after the inbox is deleted. A page may have fewer messages than `limit`. 413 `page_too_large` exists for the contract: this service ends the page early instead.',
        params: InboxParams,
        querystring: Type.Object(messagePageQuery, { additionalProperties: false }),
        response: { 200: InboxExport.ref },
      },
    },
    async ({ caller, params, query, db }, reply) => {
      const name = { list: `export ${params.inboxId}`, organizationId: caller.organizationId }
      const afterSeq = Number(cursors.read(name, query.cursor) ?? 0)
      const limit = limitOf(query)
      const { inbox, page, last } = await exportPage({ db, clock }, caller, params.inboxId, afterSeq, limit)
      return answerJson(reply, {
        formatVersion: 1,
        inbox: presentInbox(inbox),
        messages: page.map(presentMessage),
        nextCursor: last && cursors.write(name, String(last.seq)),
      })
    },
  )
}
