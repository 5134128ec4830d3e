// The MTA-STS policy of a domain that we receive mail for (RFC 8461): its text, its id, and the host that serves it.
import { createHash } from 'node:crypto'

/** `testing`: senders report failures, but deliver anyway. */
export type MtaStsMode = 'testing' | 'enforce'

const policyLabel = 'mta-sts.'
const daySeconds = 86_400

// RFC 8461 3.3: the policy of a domain is at the host `mta-sts` below it.
export function policyHostOf(domain: string): string {
  return `${policyLabel}${domain}`
}

/** The domain whose policy this host would serve. Null if the name has another form. */
export function domainOfPolicyHost(host: string): string | null {
  return host.startsWith(policyLabel) ? host.slice(policyLabel.length) : null
}

/**
 * The policy of every domain whose mail the host receives. Senders keep a testing policy for a day, so that they see a
 * change soon. They keep an enforced policy for a week.
 */
export function writePolicy(mailHost: string, mode: MtaStsMode): string {
  const maxAgeSeconds = mode === 'testing' ? daySeconds : 7 * daySeconds
  // RFC 8461 3.2: one field per line, the version first.
  return ['version: STSv1', `mode: ${mode}`, `mx: ${mailHost}`, `max_age: ${maxAgeSeconds}`, ''].join('\r\n')
}

/** A different id for each policy: 20 characters of its digest. */
export function policyIdOf(mailHost: string, mode: MtaStsMode): string {
  // RFC 8461 3.1: up to 32 letters and digits. A changed id shows senders that the policy has changed.
  return createHash('sha256').update(writePolicy(mailHost, mode)).digest('hex').slice(0, 20)
}
