// Makes certificates for tests, with names, times, keys and faults that the test chooses.
import forge from 'node-forge'

const dayMs = 86_400_000

/** The key of every certificate that names no other, so that only names distinguish their issuers. */
const sharedKeys = forge.pki.rsa.generateKeyPair(1024)

export interface CertificateOptions {
  subject: string
  issuer: string
  host?: string
  isAuthority?: boolean
  fromDays?: number
  toDays?: number
  keys?: forge.pki.rsa.KeyPair
  signedBy?: forge.pki.rsa.PrivateKey
  digest?: 'sha1' | 'sha256'
  extensions?: object[]
}

/** Returns a certificate in PEM. */
export function makeCertificate({
  subject,
  issuer,
  host,
  isAuthority = false,
  fromDays = -1,
  toDays = 9,
  keys = sharedKeys,
  signedBy = sharedKeys.privateKey,
  digest = 'sha256',
  extensions = [],
}: CertificateOptions): string {
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = keys.publicKey
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date(Date.now() + fromDays * dayMs)
  certificate.validity.notAfter = new Date(Date.now() + toDays * dayMs)
  certificate.setSubject([{ name: 'commonName', value: subject }])
  certificate.setIssuer([{ name: 'commonName', value: issuer }])
  certificate.setExtensions([
    { name: 'basicConstraints', cA: isAuthority },
    ...(host ? [{ name: 'subjectAltName', altNames: [{ type: 2, value: host }] }] : []),
    ...extensions,
  ])
  certificate.sign(signedBy, forge.md[digest].create())
  return forge.pki.certificateToPem(certificate)
}
