// DANE: whether the certificate of a mail server is one that its TLSA records describe (RFC 7672 3).
import { createHash, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'

/** A record as DNS has it. Its association data is in hexadecimal, lower case. */
export interface TlsaRecord {
  usage: number
  selector: number
  matchingType: number
  association: string
}

/** How a server violates a rule. `type`: as reports name it (RFC 8460 4.3). `text`: in words, as a clause. */
export interface Violation {
  type:
    | 'starttls-not-supported'
    | 'certificate-host-mismatch'
    | 'certificate-expired'
    | 'certificate-not-trusted'
    | 'validation-failure'
  text: string
}

/** How the certificate of a server is recognized. */
export interface DaneTarget {
  /** Usable records. Empty: TLS is required, with any certificate. */
  records: readonly TlsaRecord[]
  /** The names that a certificate issued by a trust anchor may have, that of the records first. Never empty. */
  names: readonly string[]
}

const usages = { anchor: 2, server: 3 }
const selectors = { certificate: 0, key: 1 }
const fullMatch = 0
/** From weak to strong, by matching type. */
const digests = new Map([
  [1, { name: 'sha256', bytes: 32 }],
  [2, { name: 'sha512', bytes: 64 }],
])
/** Records beyond these are ignored. Real servers have one to four. */
const maxRecords = 32
/** Certificates of a presented chain that are read. Real servers present one to four. */
const maxCertificates = 10
/** Signatures checked for one chain. A key of 16,384 bits takes 1 ms. */
const maxSignatures = 32
const serverPurposes = ['1.3.6.1.5.5.7.3.1', '2.5.29.37.0']
/** The object identifier 2.5.29.30 in DER. */
const nameConstraints = Buffer.from('0603551d1e', 'hex')

/** Returns the certificates that a server presented, its own first, and at most ten. */
export function chainOf(presented: X509Certificate | undefined): X509Certificate[] {
  const chain: X509Certificate[] = []
  for (let next = presented; next && chain.length < maxCertificates; next = next.issuerCertificate)
    chain.push(next)
  return chain
}

/** Returns the records that a client can use. */
export function usableRecords(records: readonly TlsaRecord[]): TlsaRecord[] {
  return preferStrongest(records.filter(isUsable).slice(0, maxRecords))
}

function isUsable(record: TlsaRecord): boolean {
  const { usage, selector, matchingType, association } = record
  // RFC 7672 3.1.3: PKIX-TA (0) and PKIX-EE (1) are not used in SMTP.
  if (usage !== usages.anchor && usage !== usages.server) return false
  if (selector !== selectors.certificate && selector !== selectors.key) return false
  if (matchingType !== fullMatch) return digests.get(matchingType)?.bytes === association.length / 2
  return selector === selectors.certificate
    ? readCertificate(association) !== null
    : readKey(association) !== null
}

// RFC 7671 9: among the digests of one usage and selector only the strongest counts, so that a broken one can be replaced.
function preferStrongest(records: TlsaRecord[]): TlsaRecord[] {
  return records.filter(
    ({ usage, selector, matchingType }) =>
      matchingType === fullMatch ||
      !records.some(
        (other) => other.usage === usage && other.selector === selector && other.matchingType > matchingType,
      ),
  )
}

/**
 * Returns null if the presented chain is the one that the records describe, otherwise the reason. The chain comes from
 * `chainOf`, the records from `usableRecords`: both are bounded.
 */
export function findMismatch(
  chain: readonly X509Certificate[],
  { records, names }: DaneTarget,
  now: Date,
): Violation | null {
  const [leaf, ...others] = chain
  // RFC 7672 2.2: if no record is usable, TLS is mandatory, and the server is not authenticated.
  if (records.length === 0) return null
  if (!leaf) return { type: 'validation-failure', text: 'it presented no certificate' }
  // RFC 7672 3.1.1: DANE-EE ignores the names and the expiry of the certificate.
  if (records.some((record) => record.usage === usages.server && matches(record, leaf))) return null
  const anchors = records.filter(({ usage }) => usage === usages.anchor)
  if (anchors.length === 0) return untrusted('its certificate is in no record (RFC 7672 3.1.1)')
  return findFaultOfLeaf(leaf, names, now) ?? findFaultOfChain(leaf, others, anchors, now)
}

function untrusted(text: string): Violation {
  return { type: 'certificate-not-trusted', text }
}

function findFaultOfLeaf(leaf: X509Certificate, names: readonly string[], now: Date): Violation | null {
  // RFC 7672 3.2.3: a wildcard is a whole label. The common name counts only if there is no alternative DNS name.
  if (!names.some((name) => leaf.checkHost(name, { partialWildcards: false })))
    return {
      type: 'certificate-host-mismatch',
      text: `its certificate is not valid for ${names.join(' or ')} (RFC 7672 3.2.2)`,
    }
  if (!isInTime(leaf, now))
    return {
      type: 'certificate-expired',
      text: 'its certificate has expired or is not valid yet (RFC 7672 3.1.2)',
    }
  // RFC 5280 4.2.1.12: a certificate with purposes may be used only for these.
  const isForServers = leaf.keyUsage?.some((purpose) => serverPurposes.includes(purpose)) ?? true
  return isForServers ? null : untrusted('its certificate is not for TLS servers (RFC 5280 4.2.1.12)')
}

/**
 * Searches a chain of signatures from the certificate to an anchor, over certificates that the server presented and those
 * in the records.
 */
function findFaultOfChain(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly TlsaRecord[],
  now: Date,
): Violation | null {
  const full = anchors.filter(({ matchingType }) => matchingType === fullMatch)
  const keys = full
    .filter(({ selector }) => selector === selectors.key)
    .map(({ association }) => readKey(association)!)
  const whole = full.filter(({ selector }) => selector === selectors.certificate)
  const issuers = new Set([...others, ...whole.map(({ association }) => readCertificate(association)!)])
  const reached = [leaf]
  let signatures = 0
  const isSigned = (certificate: X509Certificate, key: () => KeyObject) =>
    signatures++ < maxSignatures && isSignedBy(certificate, key)
  for (const certificate of reached) {
    // RFC 7671 5.2.2: a record may hold only the key of the anchor.
    if (keys.some((key) => isSigned(certificate, () => key))) return null
    for (const issuer of issuers) {
      if (!issuer.ca || !isInTime(issuer, now) || !certificate.checkIssued(issuer)) continue
      if (!isSigned(certificate, () => issuer.publicKey)) continue
      if (anchors.some((record) => matches(record, issuer))) return null
      issuers.delete(issuer)
      // RFC 5280 4.2.1.10: an issuer limited to some names is not followed, because the limits are not evaluated. The length
      // of the path is not limited: an issuer could always sign the server's certificate itself.
      if (!issuer.raw.includes(nameConstraints)) reached.push(issuer)
    }
  }
  return untrusted('no chain leads from its certificate to an anchor in the records (RFC 7672 3.1.2)')
}

function isInTime({ validFromDate, validToDate }: X509Certificate, now: Date): boolean {
  return validFromDate <= now && now < validToDate
}

function isSignedBy(certificate: X509Certificate, key: () => KeyObject): boolean {
  // Stops collisions: a signature over SHA-1 or MD5 can be moved to another certificate.
  if (/sha1|md5/i.test(certificate.signatureAlgorithm ?? '')) return false
  try {
    return certificate.verify(key())
  } catch {
    // A key that OpenSSL does not know.
    return false
  }
}

function matches({ selector, matchingType, association }: TlsaRecord, certificate: X509Certificate): boolean {
  const bytes = selector === selectors.key ? readKeyBytes(certificate.raw) : certificate.raw
  if (!bytes) return false
  const digest = digests.get(matchingType)
  return (
    (digest ? createHash(digest.name).update(bytes).digest('hex') : bytes.toString('hex')) === association
  )
}

function readCertificate(association: string): X509Certificate | null {
  try {
    const certificate = new X509Certificate(Buffer.from(association, 'hex'))
    // OpenSSL reads PEM as well, and ignores bytes after the end.
    return certificate.raw.toString('hex') === association ? certificate : null
  } catch {
    // It is no certificate.
    return null
  }
}

function readKey(association: string): KeyObject | null {
  try {
    return createPublicKey({ key: Buffer.from(association, 'hex'), format: 'der', type: 'spki' })
  } catch {
    // It is no key, or one that OpenSSL does not know.
    return null
  }
}

/** The public key exactly as the certificate has it. OpenSSL could write it in another form, which has another digest. */
function readKeyBytes(certificate: Buffer): Buffer | null {
  try {
    const { start } = readElement(certificate, readElement(certificate, 0).start)
    // RFC 5280 4.1: version (optional), serial number, signature, issuer, validity and subject come before the key.
    let at = certificate[start] === 0xa0 ? readElement(certificate, start).end : start
    for (let passed = 0; passed < 5; passed++) at = readElement(certificate, at).end
    return certificate.subarray(at, readElement(certificate, at).end)
  } catch {
    // A length that is none: OpenSSL reads more forms than DER.
    return null
  }
}

/** The span of the content of a DER element. Throws at the end of the bytes. */
function readElement(bytes: Buffer, at: number): { start: number; end: number } {
  const first = bytes.readUInt8(at + 1)
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + lengthBytes
  return { start, end: start + (lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes)) }
}
