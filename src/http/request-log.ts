// Logs one debug line per request, so that an x-request-id leads to the request and its result.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../base/log.ts'
import type { ErrorCode } from './errors.ts'

const what = 'request answered'

/**
 * Logs each request when it is over.
 * Security: logs only the route, which holds no id, no query and no link that signs in. Never logs bodies or header fields.
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

/** Logs a request that is too malformed to have a route. */
export function logUnread(log: Log, requestId: string, status: number, error: ErrorCode): void {
  log.debug({ requestId, method: null, route: null, status, ms: 0, organization: null, error }, what)
}
