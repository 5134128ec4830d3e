// One debug line a request, so that an x-request-id leads to what was asked and what came of it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../base/log.ts'
import type { ErrorCode } from './errors.ts'

const what = 'a request was answered'

/**
 * Tells of each request when it is over. Security: of its address only the route is written, which holds no id, no query
 * and no link that signs in; nothing is told of bodies and header fields.
 */
export function logRequests(log: Log) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    if (log.isLevelEnabled('debug')) {
      const { id: requestId, method, routeOptions, caller, signedIn } = request
      log.debug(
        {
          requestId,
          method,
          route: routeOptions.url ?? null,
          status: reply.statusCode,
          ms: Math.round(reply.elapsedTime),
          organization: (caller ?? signedIn?.caller)?.organizationId ?? null,
          ...(reply.errorCode && { error: reply.errorCode }),
        },
        what,
      )
    }
    done()
  }
}

/** The same of one that was no request that a route could be found for. */
export function logUnread(log: Log, requestId: string, status: number, error: ErrorCode): void {
  log.debug({ requestId, method: null, route: null, status, ms: 0, organization: null, error }, what)
}
