// Tests which chains the public accepts, with chains made for the test and an authority that this process trusts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import fc from 'fast-check'
import forge from 'node-forge'
import { isPublicFor } from './public-chain.ts'

const dayMs = 86_400_000
const now = new Date()
const keys = forge.pki.rsa.generateKeyPair(1024)
const otherKeys = forge.pki.rsa.generateKeyPair(1024)

interface Made {
  subject: string
  issuer: string
  host?: string
  isAuthority?: boolean
  fromDays?: number
  toDays?: number
  signedBy?: forge.pki.rsa.PrivateKey
}

/** All certificates have the same key, so that only names distinguish their issuers. `otherKeys` signs forged ones. */
function make({
  subject,
  issuer,
  host,
  isAuthority = false,
  fromDays = -1,
  toDays = 9,
  signedBy,
}: Made): string {
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = keys.publicKey
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date(now.getTime() + fromDays * dayMs)
  certificate.validity.notAfter = new Date(now.getTime() + toDays * dayMs)
  certificate.setSubject([{ name: 'commonName', value: subject }])
  certificate.setIssuer([{ name: 'commonName', value: issuer }])
  certificate.setExtensions([
    { name: 'basicConstraints', cA: isAuthority },
    ...(host ? [{ name: 'subjectAltName', altNames: [{ type: 2, value: host }] }] : []),
  ])
  certificate.sign(signedBy ?? keys.privateKey, forge.md.sha256.create())
  return forge.pki.certificateToPem(certificate)
}

const root = make({ subject: 'root', issuer: 'root', isAuthority: true })
const middle = make({ subject: 'middle', issuer: 'root', isAuthority: true })
const leaf = (changed: Partial<Made> = {}) =>
  make({ subject: 'leaf', issuer: 'middle', host: 'mx.example.com', ...changed })

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
    [make({ subject: 'mx.example.com', issuer: 'middle' }), middle],
    false,
  ],
  ['that has expired', [leaf({ toDays: -0.5 }), middle], false],
  ['not valid yet', [leaf({ fromDays: 1 }), middle], false],
  [
    'with an expired intermediate',
    [leaf(), make({ subject: 'middle', issuer: 'root', isAuthority: true, toDays: -0.5 })],
    false,
  ],
  ['with an intermediate that is no authority', [leaf(), make({ subject: 'middle', issuer: 'root' })], false],
  ['signed by another key', [leaf({ signedBy: otherKeys.privateKey }), middle], false],
  [
    'self-signed',
    [make({ subject: 'mx.example.com', issuer: 'mx.example.com', host: 'mx.example.com' })],
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
