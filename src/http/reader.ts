// Access to the database for one request: reads count against the organization's share of connections.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OrganizationId } from '../base/ids.ts'
import type { Db, Queryable } from '../postgres/db.ts'
import { isChange } from '../web/page-changes.ts'

/**
 * Returns the access for the request. GET and HEAD wait for the organization's share of connections, and their statement
 * is cancelled once the answer is sent, the client leaves, or a time limit answers 503. Changes never wait behind reads.
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
