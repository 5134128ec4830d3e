// Creates a key pair and a request (PKCS #10) for a certificate of it.
import { generateKeyPair, sign } from 'node:crypto'
import { promisify } from 'node:util'
import forge from 'node-forge'

const dnsName = 2

/**
 * A new key and a request for these names, both PEM. RSA of 2048 bits, because some senders of mail still do not
 * support elliptic curves.
 */
export async function makeCertificateRequest(
  names: readonly string[],
): Promise<{ key: string; request: string }> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
  const request = forge.pki.createCertificationRequest()
  request.publicKey = forge.pki.publicKeyFromPem(publicKey.export({ type: 'spki', format: 'pem' }).toString())
  // RFC 8555 7.4: only the extension has the names. A common name would limit them to 64 characters.
  const altNames = names.map((value) => ({ type: dnsName, value }))
  request.setAttributes([{ name: 'extensionRequest', extensions: [{ name: 'subjectAltName', altNames }] }])
  // Node signs the request that forge made, because forge's own signing blocks the main thread for 90 ms.
  const signer = {
    sign() {
      const written = request as unknown as Record<'certificationRequestInfo', forge.asn1.Asn1>
      const bytes = Buffer.from(forge.asn1.toDer(written.certificationRequestInfo).getBytes(), 'binary')
      return sign('sha256', bytes, privateKey).toString('binary')
    },
  }
  request.sign(signer as unknown as forge.pki.rsa.PrivateKey, forge.md.sha256.create())
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    request: forge.pki.certificationRequestToPem(request),
  }
}
