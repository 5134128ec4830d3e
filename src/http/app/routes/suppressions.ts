// Suppression operations that the API lacks: their notes, and the import from another service.
import Type, { type Static } from 'typebox'
import { requireWholeOrganization } from '../../../flow/caller.ts'
import { importSuppression } from '../../../flow/reports/edit-suppressions.ts'
import type { SuppressionRow } from '../../../store/sending/suppressions.ts'
import type { Api, AppDeps } from '../../api.ts'
import { byId, Cursors, pageQuery, readLimit } from '../../lists.ts'
import { presentSuppression } from '../../present.ts'
import { readSuppressions } from '../../routes/suppressions.ts'
import { Email, Nothing } from '../../schemas/scalars.ts'
import { ImportedSuppression, NotedSuppression, NotedSuppressionList } from '../schemas/suppressions.ts'

export function appSuppressionRoutes(api: Api, deps: AppDeps): void {
  addNotedList(api, new Cursors(deps.secretBox))
  addImport(api, deps)
}

const ListQuery = Type.Object({ ...pageQuery, email: Type.Optional(Email) }, { additionalProperties: false })

function addNotedList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/suppressions/noted',
    {
      preValidation: readLimit,
      config: { scope: 'delivery:read', refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listNotedSuppressions',
        tags: ['Suppressions'],
        summary: 'List suppressions with their notes',
        querystring: ListQuery,
        response: { 200: NotedSuppressionList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId } = caller
      const name = { list: 'suppressions', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        requireWholeOrganization(caller)
        return await readSuppressions(db, organizationId, query.email, before, limit)
      })
      return { suppressions: page.map(presentNoted), nextCursor }
    },
  )
}

function addImport(api: Api, { db, clock }: AppDeps): void {
  api.post(
    '/v1/suppressions/import',
    {
      config: { scope: 'delivery:send', refusals: ['inbox_not_allowed'] },
      schema: {
        operationId: 'importSuppression',
        tags: ['Suppressions'],
        summary: 'Import a suppression from a previous provider',
        description: 'An address that is already suppressed keeps its reason, note and time.',
        querystring: Nothing,
        body: ImportedSuppression.ref,
        response: { 201: NotedSuppression.ref },
      },
    },
    async ({ caller, body }, reply) => {
      const createdAt = body.createdAt === null ? null : new Date(body.createdAt)
      const row = await importSuppression({ db, clock }, caller, { ...body, createdAt })
      return reply.code(201).send(presentNoted(row))
    },
  )
}

function presentNoted(row: SuppressionRow): Static<typeof NotedSuppression.definition> {
  return { ...presentSuppression(row), note: row.note }
}
