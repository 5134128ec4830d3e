// Tests which chains the public accepts, with chains made for the test and an authority that this process trusts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import fc from 'fast-check'
import forge from 'node-forge'
import { type CertificateOptions, makeCertificate } from '../../tests/support/make-certificate.ts'
import { isPublicFor } from './public-chain.ts'

const now = new Date()
const otherKeys = forge.pki.rsa.generateKeyPair(1024)

const root = makeCertificate({ subject: 'root', issuer: 'root', isAuthority: true })
const middle = makeCertificate({ subject: 'middle', issuer: 'root', isAuthority: true })
const leaf = (changed: Partial<CertificateOptions> = {}) =>
  makeCertificate({ subject: 'leaf', issuer: 'middle', host: 'mx.example.com', ...changed })

const previous = getCACertificates('default')
before(() => setDefaultCACertificates([...previous, root]))
after(() => setDefaultCACertificates(previous))

for (const [what, chain, isPublic] of [
  ['leaf and intermediate', [leaf(), middle], true],
  ['with its root', [leaf(), middle, root], true],
  ['issued by the root', [leaf({ issuer: 'root' })], true],
  ['for all names below', [leaf({ host: '*.example.com' }), middle], true],
  ['without the intermediate', [leaf()], false],
  ['out of order', [middle, leaf()], false],
  ['for another host', [leaf({ host: 'www.example.com' }), middle], false],
  [
    'for the host by its subject alone',
    [makeCertificate({ subject: 'mx.example.com', issuer: 'middle' }), middle],
    false,
  ],
  ['that has expired', [leaf({ toDays: -0.5 }), middle], false],
  ['not valid yet', [leaf({ fromDays: 1 }), middle], false],
  [
    'with an expired intermediate',
    [leaf(), makeCertificate({ subject: 'middle', issuer: 'root', isAuthority: true, toDays: -0.5 })],
    false,
  ],
  [
    'with an intermediate that is no authority',
    [leaf(), makeCertificate({ subject: 'middle', issuer: 'root' })],
    false,
  ],
  ['signed by another key', [leaf({ signedBy: otherKeys.privateKey }), middle], false],
  [
    'self-signed',
    [makeCertificate({ subject: 'mx.example.com', issuer: 'mx.example.com', host: 'mx.example.com' })],
    false,
  ],
  ['of an unknown authority', [leaf({ issuer: 'nobody' }), middle], false],
  ['without certificates', [], false],
] as const)
  test(`a chain ${what} is ${isPublic ? '' : 'not '}accepted`, () => {
    assert.equal(isPublicFor(chain.join(''), 'mx.example.com', now), isPublic)
  })

test('any file content is judged without an exception', () => {
  const good = leaf() + middle
  fc.assert(
    fc.property(fc.nat(good.length), fc.nat(40), fc.string({ maxLength: 40 }), (start, count, text) => {
      const broken = good.slice(0, start) + text + good.slice(start + count)
      assert.equal(typeof isPublicFor(broken, 'mx.example.com', now), 'boolean')
    }),
  )
})
