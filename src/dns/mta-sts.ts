// The MTA-STS policy of a domain that mail is received for (RFC 8461): its text, its id, and the host that shows it.
import { createHash } from 'node:crypto'

/** `testing`: senders report what would fail, and deliver all the same. */
export type MtaStsMode = 'testing' | 'enforce'

const policyLabel = 'mta-sts.'
const daySeconds = 86_400

// RFC 8461 3.3: the policy of a domain is at the host `mta-sts` below it.
export function policyHostOf(domain: string): string {
  return `${policyLabel}${domain}`
}

/** The domain whose policy this host would show; null where it is no such host. */
export function domainOfPolicyHost(host: string): string | null {
  return host.startsWith(policyLabel) ? host.slice(policyLabel.length) : null
}

/**
 * The policy of every domain whose mail the host takes. What is tried out is kept for a day, so that senders learn of the
 * change soon; what is enforced for a week.
 */
export function writePolicy(mailHost: string, mode: MtaStsMode): string {
  const maxAgeSeconds = mode === 'testing' ? daySeconds : 7 * daySeconds
  // RFC 8461 3.2: one field a line, the version first.
  return ['version: STSv1', `mode: ${mode}`, `mx: ${mailHost}`, `max_age: ${maxAgeSeconds}`, ''].join('\r\n')
}

/** Another one for each policy: 20 characters of its digest. */
export function policyIdOf(mailHost: string, mode: MtaStsMode): string {
  // RFC 8461 3.1: up to 32 letters and digits, by whose change senders see that the policy has changed.
  return createHash('sha256').update(writePolicy(mailHost, mode)).digest('hex').slice(0, 20)
}
