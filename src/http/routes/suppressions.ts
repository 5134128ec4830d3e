// Suppressions: list, add, remove.
import Type from 'typebox'
import type { OrganizationId } from '../../base/ids.ts'
import { requireWholeOrganization } from '../../flow/caller.ts'
import { addSuppression, removeSuppression } from '../../flow/reports/edit-suppressions.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Queryable } from '../../postgres/db.ts'
import { findSuppression, listSuppressions, type SuppressionRow } from '../../store/sending/suppressions.ts'
import type { Api, HttpDeps } from '../api.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../lists.ts'
import { presentSuppression } from '../present.ts'
import { Email, Nothing } from '../schemas/scalars.ts'
import { SuppressedAddress, Suppression, SuppressionList } from '../schemas/suppression.ts'

export function suppressionRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addList(api, cursors)
  addCreate(api, deps)
  addRemove(api, deps)
}

const ListQuery = Type.Object(
  {
    ...pageQuery,
    email: Type.Optional({
      ...Email,
      description: 'Only the suppression of this address, in any spelling: one or none.',
    }),
  },
  { additionalProperties: false },
)

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/suppressions',
    {
      preValidation: readLimit,
      config: { scope: 'delivery:read', refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listSuppressions',
        tags: ['Suppressions'],
        summary: 'List suppressions',
        description: 'Newest first. With `email`, shows whether that address is suppressed, and why.',
        querystring: ListQuery,
        response: { 200: SuppressionList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId } = caller
      const name = { list: 'suppressions', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        requireWholeOrganization(caller)
        return await readSuppressions(db, organizationId, query.email, before, limit)
      })
      return { suppressions: page.map(presentSuppression), nextCursor }
    },
  )
}

/** Returns up to `limit` suppressions after `before`, newest first. With `email`, only that of this address. */
export async function readSuppressions(
  db: Queryable,
  organizationId: OrganizationId,
  email: string | undefined,
  before: string | null,
  limit: number,
): Promise<SuppressionRow[]> {
  if (email === undefined) return await listSuppressions(db, organizationId, before, limit)
  const found = await findSuppression(db, organizationId, sameAddressKey(email))
  return found && (before === null || found.id < before) ? [found] : []
}

function addCreate(api: Api, { db, clock }: HttpDeps): void {
  api.post(
    '/v1/suppressions',
    {
      config: { scope: 'delivery:send', refusals: ['inbox_not_allowed'] },
      schema: {
        operationId: 'createSuppression',
        tags: ['Suppressions'],
        summary: 'Suppress an address',
        description: 'Returns an existing suppression unchanged.',
        querystring: Nothing,
        body: SuppressedAddress.ref,
        response: { 201: Suppression.ref },
      },
    },
    async ({ caller, body }, reply) => {
      const row = await addSuppression({ db, clock }, caller, body.email)
      return reply.code(201).send(presentSuppression(row))
    },
  )
}

function addRemove(api: Api, { db, clock }: HttpDeps): void {
  api.delete(
    '/v1/suppressions',
    {
      config: {
        scope: 'delivery:send',
        refusals: ['inbox_not_allowed', 'not_found'],
        otherResponses: { 204: { description: 'The address can receive mail again.', contentType: null } },
      },
      schema: {
        operationId: 'deleteSuppression',
        tags: ['Suppressions'],
        summary: 'Remove a suppression',
        description: 'The address can receive mail again.',
        querystring: Nothing,
        body: SuppressedAddress.ref,
      },
    },
    async ({ caller, body }, reply) => {
      await removeSuppression({ db, clock }, caller, body.email)
      return reply.code(204).send()
    },
  )
}
