// Mails verified as they stream in: every verdict of DKIM, keys as DNS publishes them, any bytes in any pieces.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { sealMail } from '../../tests/support/seal-mail.ts'
import { type SigningPlan, signatureOf, signMail } from '../../tests/support/sign-mail.ts'
import { lookupIn, verifyMail } from '../../tests/support/verify-mail.ts'
import { Resolver } from '../dns/resolver.ts'
import { generateDkimKey } from './dkim-sign.ts'

const records: Record<string, string[] | 'temporary'> = {}
let record: string
let otherRecord: string
let plan: SigningPlan
let server: DnsServer
let resolver: Resolver

before(async () => {
  const algorithm = 'rsa-sha256'
  const key = await generateDkimKey(algorithm)
  record = key.publicRecord
  otherRecord = (await generateDkimKey(algorithm)).publicRecord
  records['s._domainkey.a.example'] = [record]
  records['down._domainkey.a.example'] = 'temporary'
  const privateKey = createPrivateKey(key.privatePem)
  const form = { header: 'relaxed', body: 'relaxed' } as const
  plan = { domain: 'a.example', selector: 's', algorithm, privateKey, ...form, names: 'from:to' }
  server = await startDns()
  resolver = new Resolver({ servers: [server.address], timeoutMs: 1_000, tries: 1 })
})
after(() => server.close())

async function startDns(): Promise<DnsServer> {
  const base64 = record.slice(record.indexOf(' p=') + 3)
  const pieces = base64.match(/.{1,2}/g)!
  const server = await DnsServer.start({
    'one._domainkey.a.example': { TXT: [record.match(/.{1,255}/g)!] },
    'split._domainkey.a.example': { TXT: [['v=DKI', 'M1; k=r', 'sa; p', '=', ...base64.match(/.{1,99}/g)!]] },
    'many._domainkey.a.example': { TXT: [['v=DKIM1;', ...Array(100).fill('   '), ' p=', ...pieces]] },
    'huge._domainkey.a.example': { TXT: [[record, '; n=', ...Array(300).fill('x'.repeat(200))]] },
    'two._domainkey.a.example': { TXT: [otherRecord, record] },
    'mixed._domainkey.a.example': { TXT: ['v=spf1 -all', 'v=DKIM1; p=', record] },
    'six._domainkey.a.example': { TXT: [...Array(5).fill('other text'), record] },
    'alias._domainkey.a.example': { CNAME: 'one._domainkey.a.example' },
    'empty._domainkey.a.example': { A: ['192.0.2.1'] },
    'servfail._domainkey.a.example': {},
    'silent._domainkey.a.example': {},
    'garbage._domainkey.a.example': {},
  })
  server.fail('servfail._domainkey.a.example', 'SERVFAIL')
  server.fail('silent._domainkey.a.example', 'silent')
  server.fail('garbage._domainkey.a.example', 'garbage')
  return server
}

const mail = 'From: ann@a.example\r\nTo: bob@far.example\r\n\r\nbody\r\n'
const dkimOf = async (bytes: Buffer | string) => (await verifyMail(bytes, lookupIn(records))).dkim

test('a pass shows the signer, the algorithm and the questions asked', async () => {
  assert.deepEqual(await dkimOf(signMail(mail, [{ ...plan, tags: { i: 'ann@sub.a.example' } }])), [
    {
      result: 'pass',
      reason: 'verified with 2048 bits',
      domain: 'a.example',
      selector: 's',
      identity: 'ann@sub.a.example',
      algorithm: 'rsa-sha256',
      canonicalization: 'relaxed/relaxed',
      coversBody: true,
      testing: false,
      asked: ['TXT s._domainkey.a.example'],
    },
  ])
})

const tagged: [string, Partial<SigningPlan>, string][] = [
  [
    'U-labels',
    { tags: { d: 'b\xc3\xbccher.example', i: '@b\xc3\xbccher.example' } },
    'permerror xn--bcher-kva.example no key for signature',
  ],
  [
    'a domain in capitals',
    { tags: { d: 'A.Example', i: '@A.EXAMPLE' } },
    'pass a.example verified with 2048 bits',
  ],
  ['l= far beyond the body', { tags: { l: '9'.repeat(76) } }, 'fail a.example the body is shorter than l='],
  ['l= of all', { lengthBytes: 6 }, 'pass a.example verified with 2048 bits'],
  ['l= of less', { lengthBytes: 2 }, 'policy a.example l= leaves the end of the body unsigned'],
  ['l= that is no number', { tags: { l: '-1' } }, 'neutral a.example signature syntax error in l='],
  ['a changed body hash', { tags: { bh: 'AAAA' } }, 'fail a.example body hash did not verify'],
  [
    'a body hash that is none',
    { tags: { bh: 'not_base64' } },
    'neutral a.example signature syntax error in bh=',
  ],
  [
    'a key that cannot be asked',
    { selector: 'down' },
    'temperror a.example key unavailable: DNS answered SERVFAIL',
  ],
  ['a selector that is none', { tags: { s: 'a..b' } }, 'neutral a.example signature syntax error in s='],
  [
    'a name too long for DNS',
    { tags: { s: Array(60).fill('abc').join('.') } },
    'permerror a.example no key: its name is too long for DNS',
  ],
  [
    'a selector that is too long',
    { tags: { s: Array(70).fill('abc').join('.') } },
    'neutral a.example signature syntax error in s=',
  ],
  ['an address as a domain', { tags: { d: '192.0.2.1' } }, 'neutral null signature syntax error in d='],
  ['rsa-sha1', { tags: { a: 'rsa-sha1' } }, 'policy a.example signed with rsa-sha1'],
  ['an unknown algorithm', { tags: { a: 'rsa-md5' } }, 'neutral a.example unsupported algorithm'],
  ['h= without From', { names: 'to' }, 'permerror a.example From field not signed'],
  ['h= that is empty', { names: '' }, 'permerror a.example From field not signed'],
  ['expired', { tags: { x: '1000' } }, 'policy a.example signature expired'],
  [
    'a field of more than 16 KiB',
    { tags: { z: 'x'.repeat(17_000) } },
    'neutral null the signature field is longer than 16 KiB',
  ],
  ['no list of tags', { tags: { 'a b': 'c' } }, 'neutral null signature syntax error: not a list of tags'],
]

test(`${tagged.length} signatures get their results and reasons`, async () => {
  for (const [what, more, wanted] of tagged) {
    const [verdict] = await dkimOf(signMail(mail, [{ ...plan, ...more }]))
    assert.equal(`${verdict!.result} ${verdict!.domain} ${verdict!.reason}`, wanted, what)
    assert.equal(verdict!.coversBody, verdict!.result === 'pass', what)
  }
})

test('eight of twelve signatures count, and the others cost no question', async () => {
  const plans = Array.from({ length: 12 }, (_, index) => ({ ...plan, selector: `s${index}` }))
  const dkim = await dkimOf(signMail(mail, plans))
  assert.deepEqual(
    dkim.flatMap(({ asked }) => asked),
    plans.slice(0, 8).map(({ selector }) => `TXT ${selector}._domainkey.a.example`),
  )
  assert.deepEqual(
    [dkim.length, dkim[8]!.result, dkim[8]!.reason],
    [9, 'policy', '4 more signatures than 8: not verified'],
  )
})

test('a key is asked for once, however many signatures it verifies', async () => {
  const asked: string[] = []
  const known = lookupIn(records)
  await verifyMail(signMail(mail, [plan, plan, plan]), (type, name) => {
    asked.push(name)
    return known(type, name)
  })
  assert.deepEqual(asked, ['s._domainkey.a.example'])
})

test('a header of more than 256 KiB or 1,000 fields is not verified', async () => {
  for (const more of [`X: ${'x'.repeat(1 << 18)}\r\n`, 'X: y\r\n'.repeat(1_001)]) {
    const { dkim, arc } = await verifyMail(more + signMail(mail, [plan]), lookupIn(records))
    assert.deepEqual([dkim[0]!.result, arc.result, dkim[0]!.asked], ['policy', 'fail', []])
  }
})

const answers: [string, string][] = [
  ['one', 'pass'],
  ['split', 'pass'],
  ['many', 'pass'],
  ['two', 'pass'],
  ['mixed', 'pass'],
  ['alias', 'pass'],
  ['six', 'permerror'],
  ['huge', 'permerror'],
  ['empty', 'permerror'],
  ['missing', 'permerror'],
  ['servfail', 'temperror'],
  ['silent', 'temperror'],
  ['garbage', 'temperror'],
]

test(`check 54: ${answers.length} kinds of DNS answers are read: split strings, two records, none, out of order`, async () => {
  for (const [selector, wanted] of answers) {
    const signed = signMail(mail, [{ ...plan, selector }])
    const { dkim } = await verifyMail(signed, (type, name) => resolver.resolve(type, name))
    assert.equal(dkim[0]!.result, wanted, `${selector}: ${dkim[0]!.reason}`)
  }
})

const line = fc.constantFrom(
  ...['From: a@a.example', 'To: b', ' folded', 'no field', ': x', 'ARC-Seal: i=1; cv=none', 'X: \xff'],
  ...['DKIM-Signature: v=1', 'DKIM-Signature: a=b;;', 'ARC-Authentication-Results: i=1; x; dkim=pass', ''],
)
const word = fc.constantFrom('\r\n', '\r', '\n', ' ', '\t', 'a', '.', '\0', '\xff', '\r\n\r\n')

test('any bytes get the same verdicts whole and in pieces', async () => {
  const sealing = { ...plan, instance: 1, results: 'a.example; dmarc=pass' }
  const property = fc.asyncProperty(
    fc.array(line, { maxLength: 8 }),
    fc.array(word, { maxLength: 30 }),
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
    fc.constantFrom('simple', 'relaxed'),
    async (lines, words, pieceLengths, body) => {
      const text = `${lines.join('\r\n')}\r\n\r\n${words.join('')}`
      const own = { ...plan, body, lengthBytes: words.length } as const
      const signed = sealMail(
        `${signatureOf(text, own)}${signatureOf(text, { ...plan, body })}${text}`,
        sealing,
      )
      const bytes = Buffer.from(signed, 'latin1')
      const whole = await verifyMail(bytes, lookupIn(records))
      assert.deepEqual(await verifyMail(bytes, lookupIn(records), { pieceLengths }), whole)
      assert.ok(whole.dkim.length >= 2 && whole.dkim[0]!.reason !== '')
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

test('noise in place of a mail gets verdicts as well', async () => {
  const property = fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
    const { dkim, arc } = await verifyMail(Buffer.from(bytes), lookupIn(records))
    assert.deepEqual([dkim, arc.result], [[], 'none'])
  })
  await fc.assert(property, { numRuns: 300 })
})

test('a signature with any byte changed never passes for other content', async () => {
  const signed = signMail(mail, [plan])
  const property = fc.asyncProperty(fc.nat(signed.length - 1), fc.nat(255), async (at, byte) => {
    const changed = Buffer.from(signed)
    changed[at] = byte
    for (const { result, domain, coversBody } of await dkimOf(changed)) {
      if (result !== 'pass') continue
      assert.deepEqual([domain?.toLowerCase(), coversBody], ['a.example', true])
      const plain = (bytes: Buffer) =>
        bytes
          .subarray(-mail.length)
          .toString('latin1')
          .toLowerCase()
          .replace(/[ \t]+/g, ' ')
      const from = (bytes: Buffer) => plain(bytes).split('\r\n')[0]
      assert.equal(from(changed), from(signed))
    }
  })
  await fc.assert(property, { numRuns: 500 })
})
