// Admits requests under /app: their session, their origin, and the operations that a role allows.
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../../base/errors.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import { within } from '../../base/within.ts'
import type { Caller } from '../../flow/caller.ts'
import type { SignedIn } from '../../flow/people/sessions.ts'
import { pageToken } from '../../flow/people/tokens.ts'
import type { MembershipRow } from '../../store/people/people.ts'
import { isChange, requireOrigin, requirePageToken } from '../../web/page-changes.ts'
import { answerInTime, unavailable } from '../answer-in-time.ts'
import type { Admitted, Api, AppDeps, Authenticate } from '../api.ts'
import { answerMs, callerMs, countRequest } from '../caller.ts'
import { readerFor } from '../reader.ts'
import { requirePrivate, sessionToken } from './cookies.ts'

type Deps = Pick<AppDeps, 'db' | 'sessions' | 'publicUrl' | 'requestRate'>

/**
 * Operations that a pending or suspended organization allows: its members may read it and leave it. Every other operation
 * needs an active organization.
 * Security: a stranger may apply for an organization, so nothing in a pending one may send, invite or rename.
 */
const openWhileInactive: Record<string, (request: FastifyRequest) => boolean> = {
  listMembers: () => true,
  listKeys: () => true,
  listAudit: () => true,
  exportAudit: () => true,
  listMade: isOneself,
  removeMember: isOneself,
}

/** Builds the caller of an API operation from the session instead of a key. The operation checks both alike. */
export function bySession(deps: Deps): Authenticate {
  return async (request) => {
    const { organization, caller } = await requireSignedIn(deps, request)
    if (!organization || !caller)
      throw new ServiceError(
        'organization_inactive',
        'You are not a member of any organization. Request access first.',
      )
    if (isChange(request)) requireWriter(organization)
    return { ...caller, ip: writtenAddress(request.ip) } satisfies Caller
  }
}

/** Enforces the `session` of every route that is added later. A route without `session` stops the start. */
export function requireSessions(api: Api, deps: Deps): void {
  api.addHook('onRoute', (route) => {
    const { url, config, schema } = route
    const mayBeInactive = openWhileInactive[schema?.operationId ?? ''] ?? (() => false)
    const session = config?.session
    if (session === undefined) throw new Error(`the route ${url} does not say who may ask for it`)
    route.onRequest = async (request, reply) => {
      if (session === 'none') return admitAnyone(deps, request)
      request.signedIn = await within(callerMs, requireSignedIn(deps, request), unavailable)
      const { caller, organization } = request.signedIn
      if (organization) request.db = readerFor(deps, request, reply, organization.id)
      if (caller) countRequest(reply, await within(callerMs, deps.requestRate.admit(caller), unavailable))
      requireRole(session, request.signedIn)
      if (session !== 'person' && !mayBeInactive(request)) requireActive(request.signedIn)
    }
    route.handler = answerInTime(route.handler, answerMs)
  })
}

function admitAnyone(deps: Deps, request: FastifyRequest): void {
  requireOwnChange(deps, request)
  if (isChange(request)) requirePrivate(request)
}

/** Returns the signed-in person. A change must also come from one of our pages, which sends a token besides the cookie. */
async function requireSignedIn(deps: Deps, request: FastifyRequest): Promise<SignedIn> {
  requireOwnChange(deps, request)
  const token = sessionToken(request)
  const signedIn = token === null ? null : await deps.sessions.find(token)
  if (token === null || !signedIn) throw new ServiceError('session_required')
  if (isChange(request)) requirePageToken(request, pageToken(token))
  return signedIn
}

function requireOwnChange({ publicUrl }: Deps, request: FastifyRequest): void {
  if (!isChange(request)) return
  const { protocol, host } = request
  requireOrigin(request, [`${protocol}://${host}`, ...(publicUrl ? [new URL(publicUrl).origin] : [])])
}

function requireRole(admitted: Admitted, { organization }: SignedIn): void {
  if (admitted === 'person') return
  if (!organization)
    throw new ServiceError('organization_inactive', 'You are not a member of any organization.')
  if (admitted === 'owner' && organization.role !== 'owner') throw new ServiceError('not_an_owner')
  if (admitted === 'writer') requireWriter(organization)
}

function requireWriter({ role }: MembershipRow): void {
  if (role === 'viewer')
    throw new ServiceError(
      'insufficient_scope',
      'Viewers cannot change anything. Ask an owner to make you a member.',
    )
}

function requireActive({ organization }: SignedIn): void {
  if (organization?.status !== 'active') throw new ServiceError('organization_inactive')
}

function isOneself({ params, signedIn }: FastifyRequest): boolean {
  return (params as { personId?: string }).personId === signedIn.person.id
}
