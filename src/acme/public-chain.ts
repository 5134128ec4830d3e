// Whether a certificate is one that strangers accept: for the name, in its time, and by a chain to an authority they know.
import { X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'

/** Longer chains are none. */
const maxChain = 8

/** Whether who verifies the host is content with this PEM chain at this time. False for what cannot be read. */
export function isPublicFor(pem: string, host: string, now: Date): boolean {
  const chain = readChain(pem)
  const [leaf] = chain
  // RFC 8461 4.2: the name is an alternative one of the certificate; the subject's common name does not count.
  if (!leaf?.checkHost(host, { subject: 'never' })) return false
  return chain.every((certificate) => isInTime(certificate, now)) && leadsToRoot(chain)
}

/** The certificates of a PEM file, the first of them that of the host; none where one cannot be read. */
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

/** Each certificate is issued by the next one, and the last by a root of this program's, or is one. */
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

/** Those of Node, with those of NODE_EXTRA_CA_CERTS. Reading 265 takes 50 ms, so they are kept. */
function knownRoots(): X509Certificate[] {
  const pems = getCACertificates('default')
  if (roots?.pems !== pems) roots = { pems, certificates: pems.map((pem) => new X509Certificate(pem)) }
  return roots.certificates
}
