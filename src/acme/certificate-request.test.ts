// Tests the certificate request as another program reads it.
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import forge from 'node-forge'
import { makeCertificateRequest } from './certificate-request.ts'

test('a request has all names, no subject, and a signature by its own key', async () => {
  const names = Array.from({ length: 90 }, (_, index) => `mta-sts.${'a'.repeat(60)}.n${index}.example`)
  const { key, request } = await makeCertificateRequest(names)
  const read = forge.pki.certificationRequestFromPem(request)
  assert.ok(read.verify())
  assert.deepEqual(read.subject.attributes, [])
  const extensions = read.getAttribute({ name: 'extensionRequest' })?.extensions as {
    name: string
    altNames: { type: number; value: string }[]
  }[]
  assert.deepEqual(
    extensions.map(({ name }) => name),
    ['subjectAltName'],
  )
  assert.deepEqual(
    extensions[0]!.altNames.map(({ type, value }) => [type, value]),
    names.map((name) => [2, name]),
  )
  const ofKey = createPublicKey(createPrivateKey(key)).export({ type: 'spki', format: 'pem' })
  const ofRequest = forge.pki.publicKeyToPem(read.publicKey as forge.pki.rsa.PublicKey)
  assert.equal(ofRequest.replaceAll('\r', ''), ofKey)
})
