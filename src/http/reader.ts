// The database as an operation of an organization may read it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OrganizationId } from '../base/ids.ts'
import type { Db, Queryable } from '../postgres/db.ts'
import { isChange } from '../web/page-changes.ts'

/**
 * GET and HEAD read within the organization's share. Their statement ends with the answer: a client that left, or got 503
 * because it took too long, keeps no connection. Changes never wait behind reads.
 */
export function readerFor(
  { db }: { db: Db },
  request: FastifyRequest,
  { raw: response }: FastifyReply,
  organizationId: OrganizationId,
): Queryable {
  if (isChange(request)) return db
  const over = new AbortController()
  const abort = () => over.abort()
  if (response.destroyed) abort()
  response.once('close', abort)
  return db.read(organizationId, over.signal)
}
