// Completes every way of signing in: a new session, its cookie, and the body that shows the session.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { ServiceError } from '../../base/errors.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import { type Entering, type SignedIn, startSession } from '../../flow/people/sessions.ts'
import { pageToken } from '../../flow/people/tokens.ts'
import type { AppDeps } from '../api.ts'
import { giveSession, sessionToken } from './cookies.ts'
import type { SessionView } from './schemas/session.ts'

export type SessionBody = Static<typeof SessionView.definition>

/**
 * Opens a session under a new token and ends the browser's previous session, which an attacker may have planted or
 * another person may have left open.
 */
export async function signIn(
  deps: Pick<AppDeps, 'db' | 'clock' | 'guard' | 'sessions' | 'isDevelopment' | 'showsCaptured'>,
  request: FastifyRequest,
  reply: FastifyReply,
  who: Pick<Entering, 'personId' | 'organizationId' | 'way'>,
): Promise<SessionBody> {
  const userAgent = request.headers['user-agent'] ?? ''
  const entering = { ...who, ip: writtenAddress(request.ip), userAgent, former: sessionToken(request) }
  const { token } = await startSession(deps, entering)
  giveSession(reply, token)
  const signedIn = await deps.sessions.find(token)
  if (!signedIn) throw new ServiceError('session_required')
  await deps.guard.remember(signedIn.person.email, entering.ip)
  return presentSession(deps, signedIn, token)
}

/** The current session of the request, or null if nobody is signed in. */
export async function findSession(
  deps: Pick<AppDeps, 'sessions' | 'isDevelopment' | 'showsCaptured'>,
  request: FastifyRequest,
): Promise<SessionBody | null> {
  const token = sessionToken(request)
  const signedIn = token === null ? null : await deps.sessions.find(token)
  return token !== null && signedIn ? presentSession(deps, signedIn, token) : null
}

/** The session of a request that must have one; otherwise throws `session_required`. */
export async function showSession(
  deps: Pick<AppDeps, 'sessions' | 'isDevelopment' | 'showsCaptured'>,
  request: FastifyRequest,
): Promise<SessionBody> {
  const session = await findSession(deps, request)
  if (!session) throw new ServiceError('session_required')
  return session
}

function presentSession(
  { isDevelopment, showsCaptured }: Pick<AppDeps, 'isDevelopment' | 'showsCaptured'>,
  { session, person, organizations, organization }: SignedIn,
  token: string,
): SessionBody {
  const present = ({ id, name, status, role, serverKeys }: SignedIn['organizations'][number]) => ({
    id,
    name,
    status,
    role,
    serverKeys,
  })
  return {
    id: session.id,
    csrfToken: pageToken(token),
    person,
    organization: organization && present(organization),
    organizations: organizations.map(present),
    development: isDevelopment,
    showsCaptured,
    createdAt: session.createdAt.toISOString(),
  }
}
