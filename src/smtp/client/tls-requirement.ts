// The TLS that a mail server must offer before it gets mail: the rule for one host, and the check of its certificate.
import type { X509Certificate } from 'node:crypto'
import { chainOf, type DaneTarget, findMismatch, type Violation } from './dane.ts'

export type TlsRequirement =
  /** TLS if the server offers it, with any certificate (RFC 7435). */
  | { kind: 'opportunistic' }
  /**
   * The MTA-STS policy of the recipients' domain (RFC 8461). `enforce`: mail goes only over TLS with a valid certificate.
   * `testing`: mail goes as without a policy, and a violation is reported. `isListed`: whether the policy names this host.
   */
  | { kind: 'mta-sts'; mode: 'enforce' | 'testing'; isListed: boolean }
  /** The TLSA records of the host (RFC 7672). They decide alone. */
  | ({ kind: 'dane' } & DaneTarget)
  /** The sender's demand (RFC 8689), for a host whose name DNSSEC proves: a certificate for it that chains to a known root. */
  | { kind: 'requiretls' }

/** The security of a connection after its handshake. */
export interface PeerEvidence {
  /** The name of the mail server, as its MX record has it. */
  host: string
  /** The error code of OpenSSL for the chain of certificates, such as CERT_HAS_EXPIRED. Null: it ends at a known root. */
  chainFault: string | null
  /** The server's own certificate. `issuerCertificate` leads along the chain that it sent. */
  certificate: X509Certificate | undefined
}

export const opportunistic: TlsRequirement = { kind: 'opportunistic' }

/** Whether mail must not go without TLS, nor to a server that `violationOf` finds at fault. */
export function isMandatory(requirement: TlsRequirement): boolean {
  // RFC 7672 2.2: a server with TLSA records gets no mail in plaintext, whether the records are usable or not.
  if (requirement.kind === 'mta-sts') return requirement.mode === 'enforce'
  return requirement.kind !== 'opportunistic'
}

/** The requirement in the words of the delivery timeline, such as `mta-sts enforce`. */
export function nameOf(requirement: TlsRequirement): string {
  return requirement.kind === 'mta-sts' ? `mta-sts ${requirement.mode}` : requirement.kind
}

/** The server name of the handshake if the requirement sets it. */
export function serverNameOf(requirement: TlsRequirement | undefined): string | undefined {
  // RFC 7672 8.1: the server name is the TLSA base domain.
  return requirement?.kind === 'dane' ? requirement.names[0] : undefined
}

export const plaintext: Violation = { type: 'starttls-not-supported', text: 'the server does not start TLS' }
const unlisted: Violation = {
  type: 'validation-failure',
  text: 'the policy does not name this mail server',
}

const chainFaults: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
}

/** Returns the reason why the connection violates the requirement. Null if it does not. `peer`: null without TLS. */
export function violationOf(requirement: TlsRequirement, peer: PeerEvidence | null): Violation | null {
  switch (requirement.kind) {
    case 'opportunistic':
      return null
    case 'mta-sts':
      return ruled(`MTA-STS policy (${requirement.mode})`, requirement.isListed ? unverified(peer) : unlisted)
    case 'requiretls':
      return ruled('REQUIRETLS', unverified(peer))
    case 'dane':
      // At the system's time, by which OpenSSL checks the chains of other requirements.
      return ruled(
        `DANE, by the TLSA records of ${requirement.names[0]}`,
        peer ? findMismatch(chainOf(peer.certificate), requirement, new Date()) : plaintext,
      )
  }
}

function ruled(rule: string, violation: Violation | null): Violation | null {
  return violation && { type: violation.type, text: `${rule}: ${violation.text}` }
}

function unverified(peer: PeerEvidence | null): Violation | null {
  // RFC 8461 4: the server must support STARTTLS.
  if (!peer) return plaintext
  const { host, chainFault, certificate } = peer
  // RFC 8461 4.2: the certificate must not be expired, and must chain to a root that the sender trusts.
  if (chainFault) {
    const type = chainFault === 'CERT_HAS_EXPIRED' ? 'certificate-expired' : 'certificate-not-trusted'
    return { type, text: chainFaults[chainFault] ?? `its certificate is not trusted (${chainFault})` }
  }
  // RFC 8461 4.2: a DNS name among the subject's alternative names must match the host. The common name does not count.
  const named = certificate?.checkHost(host, { subject: 'never', partialWildcards: false })
  if (named !== undefined) return null
  return { type: 'certificate-host-mismatch', text: `its certificate is not for ${host}` }
}
