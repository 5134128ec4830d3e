// A certificate authority for tests, which issues certificates of every kind: valid, expired, for another name, self-signed.
import { generateKeyPairSync } from 'node:crypto'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import forge from 'node-forge'
import type { Scope } from './until.ts'

export interface Identity {
  key: string
  cert: string
}

export interface Authority {
  /** Its own certificate, in PEM. */
  cert: string
  issue(host: string, options?: { toDays?: number; isSelfSigned?: boolean }): Identity
}

const dayMs = 86_400_000

/** Makes an authority that this process trusts until the scope ends. All certificates share one key. */
export function trustAuthority(scope: Scope): Authority {
  const pem = { type: 'pkcs8', format: 'pem' } as const
  const { privateKey: key } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: pem,
  })
  const privateKey = forge.pki.privateKeyFromPem(key)
  const publicKey = forge.pki.setRsaPublicKey(privateKey.n, privateKey.e)
  const name = 'test authority'
  let serial = 0
  const write = (subject: string, issuer: string, toDays: number, extensions: object[]): string => {
    const certificate = forge.pki.createCertificate()
    certificate.publicKey = publicKey
    certificate.serialNumber = `0${(++serial).toString(16)}`
    certificate.validity.notBefore = new Date(Date.now() - 9 * dayMs)
    certificate.validity.notAfter = new Date(Date.now() + toDays * dayMs)
    certificate.setSubject([{ name: 'commonName', value: subject }])
    certificate.setIssuer([{ name: 'commonName', value: issuer }])
    certificate.setExtensions(extensions)
    certificate.sign(privateKey, forge.md.sha256.create())
    return forge.pki.certificateToPem(certificate)
  }
  const own = write(name, name, 9, [{ name: 'basicConstraints', cA: true }])
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, own])
  scope.after(() => setDefaultCACertificates(before))
  return {
    cert: own,
    issue: (host, { toDays = 9, isSelfSigned = false } = {}) => {
      const altNames = [{ type: 2, value: host }]
      const cert = write(host, isSelfSigned ? host : name, toDays, [{ name: 'subjectAltName', altNames }])
      return { key, cert }
    },
  }
}
