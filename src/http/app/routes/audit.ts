// The audit log: by pages, and as one CSV file.
import { Readable } from 'node:stream'
import Type from 'typebox'
import type { OrganizationId } from '../../../base/ids.ts'
import type { Queryable } from '../../../postgres/db.ts'
import { type AuditEntry, listAuditEntries } from '../../../store/accounts/audit.ts'
import type { Api } from '../../api.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../../lists.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { organizationOf } from '../asking.ts'
import { csvRecord } from '../csv.ts'
import { AuditLog } from '../schemas/organization.ts'

const tags = ['Audit']
const chunk = 1_000

export function auditRoutes(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/audit',
    {
      preValidation: readLimit,
      config: { session: 'writer', refusals: ['invalid_cursor'] },
      schema: {
        operationId: 'listAudit',
        tags,
        summary: 'Show the audit log',
        description: 'Newest first.',
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: AuditLog.ref },
      },
    },
    async (request) => {
      const { id: organizationId } = organizationOf(request)
      const name = { list: 'audit', organizationId }
      const { page, nextCursor } = await cursors.page(name, request.query, byId, (before, limit) =>
        listAuditEntries(request.db, organizationId, before, limit),
      )
      return { entries: page.map(({ at, ...entry }) => ({ ...entry, at: at.toISOString() })), nextCursor }
    },
  )
  api.get(
    '/v1/audit.csv',
    {
      config: {
        session: 'writer',
        otherResponses: {
          200: { description: 'The whole audit log, newest first.', contentType: 'text/csv' },
        },
      },
      schema: {
        operationId: 'exportAudit',
        tags,
        summary: 'Export the audit log',
        querystring: Nothing,
      },
    },
    async (request, reply) => {
      reply.headers({
        'content-type': 'text/csv; charset=utf-8; header=present',
        'content-disposition': 'attachment; filename="audit.csv"',
      })
      return reply.send(Readable.from(writeRecords(request.db, organizationOf(request).id)))
    },
  )
}

async function* writeRecords(db: Queryable, organizationId: OrganizationId): AsyncGenerator<string> {
  yield csvRecord(['at', 'actor', 'action', 'subject', 'detail', 'ip', 'id'])
  for (let before: string | null = null; ; ) {
    const entries: AuditEntry[] = await listAuditEntries(db, organizationId, before, chunk)
    yield entries.map(recordOf).join('')
    if (entries.length < chunk) return
    before = entries.at(-1)!.id
  }
}

function recordOf({ id, actor, action, subject, detail, ip, at }: AuditEntry): string {
  const written = Object.keys(detail).length > 0 ? JSON.stringify(detail) : ''
  return csvRecord([at.toISOString(), actor, action, subject, written, ip ?? '', id])
}
