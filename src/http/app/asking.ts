// Who asks, and from where, as the flows of people take it.
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../../base/errors.ts'
import { writtenAddress } from '../../base/ip-address.ts'
import type { MemberActing } from '../../flow/people/invitations.ts'
import type { Site } from '../../flow/people/passkeys.ts'
import type { MembershipRow } from '../../store/people/people.ts'
import type { AppDeps } from '../api.ts'

export function addressOf({ ip }: FastifyRequest): string {
  return writtenAddress(ip)
}

/** The organization of the request; its operation asks for a member, so there is one. */
export function organizationOf({ signedIn: { organization } }: FastifyRequest): MembershipRow {
  if (!organization) throw new ServiceError('organization_inactive', 'You are in no organization.')
  return organization
}

/** The member who asks. */
export function memberOf(request: FastifyRequest): MemberActing {
  const { id, name } = organizationOf(request)
  const { person, session } = request.signedIn
  return {
    organizationId: id,
    organizationName: name,
    personId: person.id,
    sessionId: session.id,
    email: person.email,
    ip: addressOf(request),
  }
}

/**
 * Where links in mails lead. Security: what the request calls this host is not believed, for it would lead people elsewhere;
 * only a service that has no address of its own yet, on a port that it was given, has no other.
 */
export function pagesOf(
  { publicUrl }: Pick<AppDeps, 'publicUrl'>,
  { protocol, host }: FastifyRequest,
): string {
  return publicUrl || `${protocol}://${host}`
}

/** The page that asks, as passkeys are bound to it; its origin has been found to be ours. */
export function siteOf({ headers }: FastifyRequest): Site {
  const { origin, hostname } = new URL(String(headers.origin))
  return { origin, host: hostname }
}
