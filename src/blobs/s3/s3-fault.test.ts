// Which failures of a connection to S3 are faults of the store: all that have a code, however they arise.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from 'undici'
import { ofTransport } from './s3-fault.ts'

const failureOf = (url: string): Promise<unknown> =>
  request(url).then(
    () => assert.fail('it answers'),
    (error: unknown) => error,
  )

test('a name with several addresses, none of which answers, is a fault that may pass', async () => {
  const { message, mayPass } = ofTransport(await failureOf('http://localhost:1/'))
  assert.deepEqual([message, mayPass], ['does not answer (ECONNREFUSED)', true])
})

test('an expired certificate is a fault, and a mistake in our own code is none', () => {
  const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' })
  assert.equal(ofTransport(expired).message, 'does not answer (CERT_HAS_EXPIRED)')
  const own = new TypeError('x is not a function')
  assert.throws(() => ofTransport(own), own)
})
