// Reads from a request who acts and from where: the organization, the member, the client's address, and the page.
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

/** Returns the person's current organization. Throws `organization_inactive` if the person belongs to none. */
export function organizationOf({ signedIn: { organization } }: FastifyRequest): MembershipRow {
  if (!organization)
    throw new ServiceError('organization_inactive', 'You are not a member of any organization.')
  return organization
}

/** Returns the acting member. */
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
 * Returns the base URL of links in mails.
 * Security: never uses the host that the request names, because that could lead people elsewhere. The one exception is a
 * service without a public URL, on a port that the system chose.
 */
export function pagesOf(
  { publicUrl }: Pick<AppDeps, 'publicUrl'>,
  { protocol, host }: FastifyRequest,
): string {
  return publicUrl || `${protocol}://${host}`
}

/** Returns the site to which passkeys are bound. `admission.ts` has already checked that the origin is ours. */
export function siteOf({ headers }: FastifyRequest): Site {
  const { origin, hostname } = new URL(String(headers.origin))
  return { origin, host: hostname }
}
