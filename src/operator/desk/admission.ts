// Who may use the desk: under which names it is reached, from which page a change comes, and with which session.
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { ServiceError } from '../../base/errors.ts'
import { type DeskSession, readDesk } from '../../flow/people/operator-access.ts'
import { isChange, requireOrigin, requirePageToken } from '../../web/page-changes.ts'
import type { Desk, DeskDeps } from './deps.ts'

export const cookieName = '__Host-posthorn-desk'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every operation of the desk but that of its link. */
    deskSession: DeskSession
  }
}

/**
 * Refuses whatever is not asked for by an address, or as localhost: a stranger's page whose name was made to lead here would
 * otherwise speak to the desk as its own (DNS rebinding).
 */
export function requireKnownHost(request: FastifyRequest): void {
  const { hostname } = request
  if (hostname === 'localhost') return
  if (ipaddr.isValid(hostname.replace(/^\[|\]$/g, ''))) return
  throw new ServiceError(
    'wrong_origin',
    'The desk is reached by an address of this machine, or as localhost: from elsewhere through ssh -L.',
  )
}

/** Refuses to open the desk where the browser would not keep its cookie, before the link is used up. */
export function requireLoopback({ hostname }: FastifyRequest): void {
  const address = hostname.replace(/^\[|\]$/g, '')
  if (hostname === 'localhost' || ipaddr.process(address).range() === 'loopback') return
  throw new ServiceError(
    'wrong_origin',
    'Over plain HTTP a browser keeps the cookie of the desk for its own machine alone: forward the port with ssh -L, and open the link at 127.0.0.1.',
  )
}

/** Refuses a change that no page of the desk asked for. */
export function requireOwnOrigin(request: FastifyRequest): void {
  requireOrigin(request, [`http://${request.host}`])
}

/** Puts every route that is added after it behind the session of a link; a change needs the page's token beside the cookie. */
export function requireDesk(desk: Desk, deps: Pick<DeskDeps, 'db' | 'clock'>): void {
  desk.addHook('onRequest', async (request) => {
    if (isChange(request)) requireOwnOrigin(request)
    const cookie = request.cookies[cookieName]
    const session = cookie === undefined ? null : await readDesk(deps, cookie)
    if (!session)
      throw new ServiceError('session_required', 'Open the desk by a link: posthorn operator link')
    if (isChange(request)) requirePageToken(request, session.csrfToken)
    request.deskSession = session
  })
}

/** Refuses what cannot be undone unless the request bears the name of what it ends. */
export function requireConfirmed(confirm: string, name: string): void {
  if (confirm !== name)
    throw new ServiceError('invalid_request', `This cannot be undone: /confirm must be "${name}".`)
}
