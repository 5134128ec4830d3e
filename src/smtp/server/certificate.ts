// The certificate of the listeners: read from files and read again when they change, or self-signed at start.
import { generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type SecureContext } from 'node:tls'
import { promisify } from 'node:util'
import forge from 'node-forge'
import type { Log } from '../../base/log.ts'

// RFC 8996 2: TLS 1.0 and 1.1 are not to be used.
const minVersion = 'TLSv1.2'
const pollMs = 1_000
const validityMs = 3650 * 86_400_000

/** A certificate with its chain, and its key. */
export interface PemPair {
  cert: string
  key: string
}

/** Returns a function that makes the TLS context of the current pair. A new pair makes a new context. */
export function contextOf(pair: () => PemPair): () => SecureContext {
  let made: { pair: PemPair; context: SecureContext } | null = null
  return () => {
    const current = pair()
    if (made?.pair !== current) made = { pair: current, context: contextFor(current) }
    return made.context
  }
}

function contextFor(pair: PemPair): SecureContext {
  return createSecureContext({ ...pair, minVersion })
}

/** A self-signed certificate for opportunistic TLS, which no sender verifies (RFC 7435 3). */
export async function makeSelfSigned(hostname: string): Promise<PemPair> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.publicKeyFromPem(
    publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  )
  // RFC 5280 4.1.2.2: a positive integer of at most 20 octets.
  certificate.serialNumber = `01${randomBytes(15).toString('hex')}`
  certificate.validity.notAfter = new Date(Date.now() + validityMs)
  certificate.setSubject([{ name: 'commonName', value: hostname }])
  certificate.setIssuer(certificate.subject.attributes)
  certificate.sign(signerOf(certificate, privateKey), forge.md.sha256.create())
  return { cert: forge.pki.certificateToPem(certificate), key }
}

/** Returns a key that makes forge sign with node:crypto. forge's own signing would block the main thread for 90 ms. */
function signerOf(certificate: forge.pki.Certificate, key: KeyObject): forge.pki.rsa.PrivateKey {
  const signer = {
    sign() {
      const { tbsCertificate } = certificate as unknown as { tbsCertificate: forge.asn1.Asn1 }
      const bytes = Buffer.from(forge.asn1.toDer(tbsCertificate).getBytes(), 'binary')
      return sign('sha256', bytes, key).toString('binary')
    },
  }
  return signer as unknown as forge.pki.rsa.PrivateKey
}

/** Returns the pair in these PEM files. If a later pair is unusable, logs that and keeps the last good pair. */
export function readFilesAgain(files: { certFile: string; keyFile: string }, log: Log): () => PemPair {
  let seen = stampOf(files)
  let pair = read(files)
  let polledAtMs = performance.now()
  return () => {
    if (performance.now() - polledAtMs < pollMs) return pair
    polledAtMs = performance.now()
    try {
      const stamp = stampOf(files)
      if (stamp !== seen) {
        pair = read(files)
        seen = stamp
        log.info(files, 'certificate reloaded')
      }
    } catch (error) {
      log.error({ err: error, ...files }, 'certificate could not be read; the previous one stays in use')
    }
    return pair
  }
}

/** Throws if the files cannot be read or are no usable pair. */
function read({ certFile, keyFile }: { certFile: string; keyFile: string }): PemPair {
  const pair = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  contextFor(pair)
  return pair
}

function stampOf({ certFile, keyFile }: { certFile: string; keyFile: string }): string {
  return [certFile, keyFile].map((file) => `${statSync(file).mtimeMs} ${statSync(file).ino}`).join(' ')
}
