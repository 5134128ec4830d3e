// Admits requests to the desk: the host name they use, the origin of a change, and the session.
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { ServiceError } from '../../base/errors.ts'
import { type DeskSession, readDesk } from '../../flow/people/operator-access.ts'
import { isChange, requireOrigin, requirePageToken } from '../../web/page-changes.ts'
import type { Desk, DeskDeps } from './deps.ts'

export const cookieName = '__Host-posthorn-desk'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every operation of the desk except that of its link. */
    deskSession: DeskSession
  }
}

/**
 * Refuses every host name except IP addresses and localhost. Otherwise a stranger's page whose name resolves to this host
 * could use the desk as its own origin (DNS rebinding).
 */
export function requireKnownHost(request: FastifyRequest): void {
  const { hostname } = request
  if (hostname === 'localhost') return
  if (ipaddr.isValid(hostname.replace(/^\[|\]$/g, ''))) return
  throw new ServiceError(
    'wrong_origin',
    'Open the desk by an IP address of this machine or as localhost. From another machine, forward the port with ssh -L.',
  )
}

/** Refuses to open the desk if the browser would not keep its cookie, before the link is used up. */
export function requireLoopback({ hostname }: FastifyRequest): void {
  const address = hostname.replace(/^\[|\]$/g, '')
  if (hostname === 'localhost' || ipaddr.process(address).range() === 'loopback') return
  throw new ServiceError(
    'wrong_origin',
    'Over plain HTTP, browsers keep the session cookie only for their own machine. Forward the port with ssh -L and open the link at 127.0.0.1.',
  )
}

/** Refuses a change that does not come from a page of the desk. */
export function requireOwnOrigin(request: FastifyRequest): void {
  requireOrigin(request, [`http://${request.host}`])
}

/** Requires a session on every route that is added later. A change also needs the page's token besides the cookie. */
export function requireDesk(desk: Desk, deps: Pick<DeskDeps, 'db' | 'clock'>): void {
  desk.addHook('onRequest', async (request) => {
    if (isChange(request)) requireOwnOrigin(request)
    const cookie = request.cookies[cookieName]
    const session = cookie === undefined ? null : await readDesk(deps, cookie)
    if (!session)
      throw new ServiceError('session_required', 'Open the desk with a link from: posthorn operator link')
    if (isChange(request)) requirePageToken(request, session.csrfToken)
    request.deskSession = session
  })
}

/** Refuses an operation that cannot be undone unless the request contains the name of its object. */
export function requireConfirmed(confirm: string, name: string): void {
  if (confirm !== name)
    throw new ServiceError('invalid_request', `This cannot be undone. To confirm, set /confirm to "${name}".`)
}
