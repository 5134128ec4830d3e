// Which TLSA records are usable, and which chains of certificates they accept.
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import forge from 'node-forge'
import { type CertificateOptions, makeCertificate } from '../../../tests/support/make-certificate.ts'
import { type DaneTarget, findMismatch as find, type TlsaRecord, usableRecords } from './dane.ts'

const now = new Date()
/** The mismatch in words. */
const findMismatch = (chain: readonly X509Certificate[], target: DaneTarget, at: Date) =>
  find(chain, target, at)?.text ?? null
const host = 'mx.example.com'
const names = [host, 'example.com']
const rootKeys = forge.pki.rsa.generateKeyPair(1024)
const otherKeys = forge.pki.rsa.generateKeyPair(1024)
const make = (options: CertificateOptions) => new X509Certificate(makeCertificate(options))
const rootOptions = { subject: 'root', issuer: 'root', isAuthority: true, keys: rootKeys }
const root = make({ ...rootOptions, signedBy: rootKeys.privateKey })
const middleOptions = {
  subject: 'middle',
  issuer: 'root',
  isAuthority: true,
  signedBy: rootKeys.privateKey,
}
const middle = make(middleOptions)
const leafOptions = { subject: 'leaf', issuer: 'middle', host, keys: otherKeys }
const leaf = make(leafOptions)
const selfSigned = make({ subject: 'leaf', issuer: 'leaf', keys: otherKeys, signedBy: otherKeys.privateKey })
const constrained = make({
  ...middleOptions,
  extensions: [{ id: '2.5.29.30', critical: true, value: '0\x00' }],
})
const stranger = make({ subject: 'stranger', issuer: 'stranger', isAuthority: true })

const forms = ['', 'sha256', 'sha512'] as const

/** A record for the certificate, written as `3 1 1`. */
function recordOf(numbers: string, certificate: X509Certificate): TlsaRecord {
  const [usage, selector, matchingType] = numbers.split(' ').map(Number) as [number, number, number]
  const bytes =
    selector === 0 ? certificate.raw : certificate.publicKey.export({ type: 'spki', format: 'der' })
  const form = forms[matchingType]
  const association = form ? createHash(form).update(bytes).digest('hex') : bytes.toString('hex')
  return { usage, selector, matchingType, association }
}

const every = ['0', '1'].flatMap((selector) => ['0', '1', '2'].map((type) => `${selector} ${type}`))

for (const form of every) {
  test(`check 35: a record 3 ${form} accepts its certificate, whatever its names and times`, () => {
    const record = recordOf(`3 ${form}`, selfSigned)
    const target = { records: usableRecords([record]), names: ['other.test'] }
    assert.equal(findMismatch([selfSigned], target, new Date('2001-01-01')), null)
    assert.match(findMismatch([leaf, selfSigned], target, now) ?? '', form[0] === '0' ? /in no record/ : /^$/)
  })

  test(`check 35: a record 2 ${form} accepts chains to its anchor`, () => {
    for (const anchor of [root, middle]) {
      const target = { records: usableRecords([recordOf(`2 ${form}`, anchor)]), names }
      assert.equal(findMismatch([leaf, root, middle], target, now), null)
      assert.equal(
        findMismatch([leaf, middle], target, now),
        form.endsWith('0') || anchor === middle ? null : unchained,
      )
    }
  })
}

const unchained = 'no chain leads from its certificate to an anchor in the records (RFC 7672 3.1.2)'
const anchored = { records: [recordOf('2 0 1', root)], names }
const otherMiddle = (changed: Partial<CertificateOptions>) => make({ ...middleOptions, ...changed })
const otherLeaf = (changed: Partial<CertificateOptions>) => make({ ...leafOptions, ...changed })
const purpose = (name: string) => [{ name: 'extKeyUsage', [name]: true }]

const chains: [string, X509Certificate[], RegExp | null][] = [
  ['in order', [leaf, middle, root], null],
  ['in any order, with strangers', [leaf, root, stranger, middle], null],
  ['for the next-hop domain', [otherLeaf({ host: 'example.com' }), middle, root], null],
  ['for all names below', [otherLeaf({ host: '*.example.com' }), middle, root], null],
  ['for the host by its subject alone', [make({ subject: host, issuer: 'middle' }), middle, root], null],
  ['for TLS servers', [otherLeaf({ extensions: purpose('serverAuth') }), middle, root], null],
  [
    'for a part of a label',
    [otherLeaf({ host: 'm*.example.com' }), middle, root],
    /not valid for mx\.example\.com or/,
  ],
  ['for another host', [otherLeaf({ host: 'www.example.com' }), middle, root], /not valid for/],
  ['that has expired', [otherLeaf({ toDays: -0.5 }), middle, root], /expired/],
  ['not valid yet', [otherLeaf({ fromDays: 1 }), middle, root], /not valid yet/],
  [
    'for clients alone',
    [otherLeaf({ extensions: purpose('clientAuth') }), middle, root],
    /not for TLS servers/,
  ],
  ['without its anchor', [leaf, middle], /no chain/],
  ['without the intermediate', [leaf, root], /no chain/],
  ['with an expired intermediate', [leaf, otherMiddle({ toDays: -0.5 }), root], /no chain/],
  [
    'with an intermediate that is no authority',
    [leaf, otherMiddle({ isAuthority: false }), root],
    /no chain/,
  ],
  ['with an intermediate limited to some names', [leaf, constrained, root], /no chain/],
  ['signed by another key', [otherLeaf({ signedBy: otherKeys.privateKey }), middle, root], /no chain/],
  ['signed over SHA-1', [otherLeaf({ digest: 'sha1' }), middle, root], /no chain/],
  ['of no certificate', [], /no certificate/],
  [
    'with its anchor beyond ten certificates',
    [leaf, ...Array<X509Certificate>(9).fill(stranger), middle],
    /no chain/,
  ],
]

for (const [what, chain, fault] of chains)
  test(`check 35: a chain ${what} is ${fault ? 'refused' : 'accepted'} by DANE-TA`, () => {
    const found = findMismatch(chain, anchored, now)
    if (fault) assert.match(found ?? 'accepted', fault)
    else assert.equal(found, null)
  })

test('check 35: an anchor may itself be limited to some names', () => {
  assert.equal(
    findMismatch([leaf, constrained], { records: [recordOf('2 1 1', constrained)], names }, now),
    null,
  )
})

test('check 35: a chain of many authorities of one name is refused in bounded time', () => {
  const keys = forge.pki.rsa.generateKeyPair(1024)
  const twins = Array.from({ length: 9 }, () =>
    make({ subject: 'middle', issuer: 'middle', isAuthority: true, keys, signedBy: keys.privateKey }),
  )
  assert.equal(findMismatch([leaf, ...twins], anchored, now), unchained)
})

const sha256 = '11'.repeat(32)
const unusable: [string, TlsaRecord][] = [
  ['PKIX-TA (0)', { usage: 0, selector: 1, matchingType: 1, association: sha256 }],
  ['PKIX-EE (1)', { usage: 1, selector: 1, matchingType: 1, association: sha256 }],
  ['an unknown usage', { usage: 4, selector: 1, matchingType: 1, association: sha256 }],
  ['an unknown selector', { usage: 3, selector: 2, matchingType: 1, association: sha256 }],
  ['an unknown matching type', { usage: 3, selector: 1, matchingType: 3, association: sha256 }],
  ['a digest that is too short', { usage: 3, selector: 1, matchingType: 1, association: sha256.slice(2) }],
  ['a digest of another length', { usage: 3, selector: 1, matchingType: 2, association: sha256 }],
  ['an empty certificate', { usage: 3, selector: 0, matchingType: 0, association: '' }],
  [
    'a cut certificate',
    { usage: 2, selector: 0, matchingType: 0, association: root.raw.toString('hex').slice(2) },
  ],
  [
    'a certificate with more after it',
    { ...recordOf('2 0 0', root), association: `${root.raw.toString('hex')}00` },
  ],
  [
    'a certificate in PEM',
    { ...recordOf('2 0 0', root), association: Buffer.from(root.toString()).toString('hex') },
  ],
  ['a key that is none', { usage: 2, selector: 1, matchingType: 0, association: sha256 }],
]

for (const [what, record] of unusable)
  test(`check 35: a record with ${what} is not usable`, () => {
    assert.deepEqual(usableRecords([record, recordOf('3 1 1', leaf)]), [recordOf('3 1 1', leaf)])
  })

test('check 35: if no record is usable, any certificate is accepted', () => {
  assert.equal(findMismatch([selfSigned], { records: [], names }, now), null)
})

test('check 35: only the strongest of several digests of one kind counts', () => {
  const records = ['3 1 1', '3 1 2', '3 0 1', '2 1 1', '3 1 0'].map((numbers) => recordOf(numbers, leaf))
  assert.deepEqual(
    usableRecords(records),
    ['3 1 2', '3 0 1', '2 1 1', '3 1 0'].map((numbers) => recordOf(numbers, leaf)),
  )
})

test('check 35: any record and any chain get a verdict', () => {
  const real = [...every.map((form) => `2 ${form}`), ...every.map((form) => `3 ${form}`)].map((numbers) =>
    recordOf(numbers, root),
  )
  const small = fc.integer({ min: 0, max: 4 })
  const anyData = fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes).toString('hex'))
  const anyRecord = fc.record({ usage: small, selector: small, matchingType: small, association: anyData })
  const cut = fc.tuple(fc.constantFrom(...real), fc.nat(600)).map(([record, length]) => ({
    ...record,
    association: record.association.slice(0, 2 * length),
  }))
  const anyChain = fc.array(fc.constantFrom(leaf, middle, root, selfSigned, constrained, stranger), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(fc.array(fc.oneof(anyRecord, cut), { maxLength: 40 }), anyChain, (records, chain) => {
      const usable = usableRecords(records)
      assert.ok(usable.length <= 32)
      const mismatch = findMismatch(chain, { records: usable, names }, now)
      assert.ok(mismatch === null || mismatch.length < 200)
    }),
  )
})
