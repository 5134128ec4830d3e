// Whether the public accepts a certificate: for the name, at this time, and by a chain to a known authority.
import { X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'

/** No more certificates of a chain are read. */
const maxChain = 8

/** Whether a client that verifies the host accepts this PEM chain at `now`. False if it cannot be read. */
export function isPublicFor(pem: string, host: string, now: Date): boolean {
  const chain = readChain(pem)
  const [leaf] = chain
  // RFC 8461 4.2: the name must be a subject alternative name. The common name does not count.
  if (!leaf?.checkHost(host, { subject: 'never' })) return false
  return chain.every((certificate) => isInTime(certificate, now)) && leadsToRoot(chain)
}

/** The certificates of a PEM file, that of the host first. Empty if one cannot be read. */
function readChain(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    return blocks.slice(0, maxChain).map((block) => new X509Certificate(block))
  } catch {
    return [] // no certificate
  }
}

function isInTime({ validFrom, validTo }: X509Certificate, now: Date): boolean {
  return new Date(validFrom) <= now && now < new Date(validTo)
}

/** Whether each certificate is issued by the next one, and the last is issued by a root of this program or is one. */
function leadsToRoot(chain: X509Certificate[]): boolean {
  for (const [index, certificate] of chain.entries()) {
    if (index > 0 && !certificate.ca) return false
    if (knownRoots().some((root) => isIssuedBy(certificate, root))) return true
    const issuer = chain[index + 1]
    if (!issuer || !isIssuedBy(certificate, issuer)) return false
  }
  return false
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

let roots: { pems: readonly string[]; certificates: X509Certificate[] } | null = null

/** The roots of Node and of NODE_EXTRA_CA_CERTS. Reading 265 takes 50 ms, so they are cached. */
function knownRoots(): X509Certificate[] {
  const pems = getCACertificates('default')
  if (roots?.pems !== pems) roots = { pems, certificates: pems.map((pem) => new X509Certificate(pem)) }
  return roots.certificates
}
