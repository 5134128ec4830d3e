// Complaints: list.
import Type from 'typebox'
import { requireWholeOrganization } from '../../flow/caller.ts'
import { listComplaints } from '../../store/sending/complaints.ts'
import type { Api } from '../api.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../lists.ts'
import { presentComplaint } from '../present.ts'
import { ComplaintList } from '../schemas/suppression.ts'

export function complaintRoutes(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/complaints',
    {
      preValidation: readLimit,
      config: { scope: 'delivery:read', refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listComplaints',
        tags: ['Suppressions'],
        summary: 'List complaints',
        description: 'Complaints of recipients, from feedback reports (RFC 5965), newest first.',
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: ComplaintList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId } = caller
      const name = { list: 'complaints', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        requireWholeOrganization(caller)
        return await listComplaints(db, organizationId, before, limit)
      })
      return { complaints: page.map(presentComplaint), nextCursor }
    },
  )
}
