// Checks signatures against the published vectors, and verifies our own with the public libraries.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { newSigningSecret, signatureHeaders } from './sign.ts'

interface Vector {
  secret: string
  id: string
  timestamp: number
  payload: string
  signature: string
}

const folder = process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata'

const file = `${folder}/webhook-signatures/vectors.json`
const skip = existsSync(file) ? false : `no ${file}: set POSTHORN_TESTDATA`

test('check 82: signatures match the published vectors', { skip }, () => {
  const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vector[]
  assert.ok(vectors.length >= 3)
  for (const { secret, id, timestamp, payload, signature } of vectors) {
    const headers = signatureHeaders(id, timestamp * 1000 + 999, payload, [secret])
    assert.deepEqual(headers, {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signature,
    })
  }
})

test('check 82: both libraries verify any signed call, with either of two secrets', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.json(), (id, body) => {
      const secrets = [newSigningSecret(), newSigningSecret()]
      const headers = signatureHeaders(id, Date.now(), body, secrets)
      for (const secret of secrets) {
        new StandardWebhook(secret).verify(body, headers)
        new SvixWebhook(secret).verify(body, headers)
      }
      assert.throws(() => new StandardWebhook(newSigningSecret()).verify(body, headers))
      assert.throws(() => new StandardWebhook(secrets[0]!).verify(`${body} `, headers))
    }),
    { numRuns: 50 },
  )
})
