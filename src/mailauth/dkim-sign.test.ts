// DKIM canonicalization and signatures, against the RFC's own examples and an independent verifier.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { type DkimRecords, mailauth } from '../../tests/support/dkim-judges.ts'
import { type DkimKey, generateDkimKey, signDkim } from './dkim-sign.ts'

const at = new Date()
let rsa: DkimKey
let ed25519: DkimKey
const records: DkimRecords = {}

before(async () => {
  const [first, second] = await Promise.all([
    generateDkimKey('rsa-sha256'),
    generateDkimKey('ed25519-sha256'),
  ])
  rsa = {
    domain: 'a.example',
    selector: 'r',
    algorithm: 'rsa-sha256',
    privateKey: createPrivateKey(first.privatePem),
  }
  ed25519 = {
    ...rsa,
    selector: 'e',
    algorithm: 'ed25519-sha256',
    privateKey: createPrivateKey(second.privatePem),
  }
  records['r._domainkey.a.example'] = first.publicRecord
  records['e._domainkey.a.example'] = second.publicRecord
})

async function isAccepted(message: Buffer): Promise<boolean> {
  const [accepted] = await mailauth.verify(
    [Buffer.concat([await signDkim(message, [ed25519], at), message])],
    records,
  )
  return accepted!
}

test('check 43: each key writes a field, in order, without l=, with From named once more', async () => {
  const message = Buffer.from('From: a@a.example\r\nSubject: s\r\nSubject: t\r\n\r\nbody\r\n')
  const block = (await signDkim(message, [ed25519, rsa], at)).toString('latin1')
  assert.match(block, /^(?:[^\r\n]{1,78}\r\n)+$/)
  const fields = block
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .trimEnd()
    .split('\r\n')
  assert.deepEqual(
    fields.map((field) => /; s=(\w);/.exec(field.replaceAll(/ +/g, ' '))?.[1]),
    ['e', 'r'],
  )
  for (const field of fields) {
    assert.match(field, /^DKIM-Signature: v=1; a=(?:rsa|ed25519)-sha256; c=relaxed\/relaxed; d=a\.example; /)
    assert.match(field, / h=from:from:to:cc:reply-to:subject:subject:subject:date:/)
    assert.ok(field.includes(`; t=${Math.floor(at.getTime() / 1000)};`) && !/\bl=/.test(field))
  }
})

test('without keys no field is written', async () => {
  assert.equal((await signDkim(Buffer.from('From: a@a.example\r\n\r\n'), [], at)).length, 0)
})

test('the public record equals a key server’s record', async () => {
  assert.match(
    records['r._domainkey.a.example']!,
    /^v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A[A-Za-z0-9+/]+={0,2}$/,
  )
  assert.match(records['e._domainkey.a.example']!, /^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/)
})

const header = 'From: a@a.example\r\n'
const odd: [string, string][] = [
  ['no body', header],
  ['no line end at the end', `${header}\r\nbody`],
  ['white space at the end of the body', `${header}\r\nbody \t`],
  ['white space before the colon', `${header}Subject \t: s\r\n\r\nbody\r\n`],
  ['a field of white space', `${header}Subject: \r\n \t\r\n x\r\n\r\nbody\r\n`],
  ['a body that only looks like a header', `${header}\r\nFrom: b@b.example\r\n\r\n`],
]

for (const [what, message] of odd) {
  test(`check 43: mailauth accepts a message with ${what}`, async () => {
    assert.ok(await isAccepted(Buffer.from(message)))
  })
}

const piece = fc.constantFrom(
  ' ',
  '  ',
  '\t',
  '\r\n',
  '\r\n\r\n',
  ' \r\n',
  '.',
  'a',
  'From: x',
  '=',
  '\xff',
  ';',
  ':',
)
const value = fc.array(fc.constantFrom(' ', '\t', 'a', 'B:', ';', '\xe9', '\r\n\t', '\r\n  b'), {
  maxLength: 12,
})
const name = fc.constantFrom('Subject', 'to', 'X-Other', 'REFERENCES', 'Reply-To')
const fields = fc.array(
  // A folded line of only white space is obsolete, and verifiers differ on it.
  fc
    .tuple(name, value)
    .map(([one, pieces]) => `${one}: x${pieces.join('')}x\r\n`.replace(/\r\n[\t ]+(?=\r\n)/g, '')),
  { maxLength: 6 },
)

test('check 43: mailauth accepts any signed message', async () => {
  await fc.assert(
    fc.asyncProperty(fields, fc.array(piece, { maxLength: 40 }), async (some, body) => {
      assert.ok(await isAccepted(Buffer.from(`${header}${some.join('')}\r\n${body.join('')}`, 'latin1')))
    }),
    { numRuns: 300 },
  )
})
