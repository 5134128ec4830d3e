// The audit log at the desk: actions in all organizations, and on the deployment.
import { pageOf } from '../../../base/page-of.ts'
import { listAllAuditEntries } from '../../../store/accounts/audit.ts'
import type { Desk, DeskDeps } from '../deps.ts'
import { AuditList, AuditQuery } from '../schemas/audit.ts'

const pageLength = 50

export function auditRoutes(desk: Desk, { db }: DeskDeps): void {
  desk.get(
    '/desk/v1/audit',
    { schema: { querystring: AuditQuery, response: { 200: AuditList } } },
    async ({ query: { cursor } }) => {
      const rows = await listAllAuditEntries(db, cursor ?? null, pageLength + 1)
      const { page, nextCursor } = pageOf(rows, pageLength)
      return { entries: page.map((row) => ({ ...row, detail: JSON.stringify(row.detail) })), nextCursor }
    },
  )
}
