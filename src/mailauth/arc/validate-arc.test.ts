// ARC chains that pass, fail or stay unknown, and the sealers whose word counts for a mail that DMARC would refuse.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { before, test } from 'node:test'
import { type SealingPlan, sealMail } from '../../../tests/support/seal-mail.ts'
import { lookupIn, type TxtRecords, verifyMail } from '../../../tests/support/verify-mail.ts'
import { generateDkimKey } from '../dkim-sign.ts'
import { type AuthorDomain, vouchingSealer } from './vouching-sealer.ts'

const plans: Record<string, SealingPlan> = {}
const records: Record<string, string[] | 'temporary'> = {}

before(async () => {
  const algorithms = ['ed25519-sha256', 'rsa-sha256', 'ed25519-sha256'] as const
  for (const [index, domain] of ['list.example', 'forwarder.example', 'evil.example'].entries()) {
    const { privatePem, publicRecord } = await generateDkimKey(algorithms[index]!)
    records[`s._domainkey.${domain}`] = [publicRecord]
    plans[domain.split('.')[0]!] = {
      domain,
      selector: 's',
      algorithm: algorithms[index]!,
      privateKey: createPrivateKey(privatePem),
      header: 'relaxed',
      body: 'relaxed',
      names: 'from:to:subject:arc-authentication-results',
      instance: 1,
      results: `${domain}; dmarc=pass header.from=author.example`,
    }
  }
})

const mail = 'From: ann@author.example\r\nTo: bob@far.example\r\nSubject: s\r\n\r\nbody\r\n'

/** Seals the mail by each hop in order. Each hop gives its changes to its plan. */
function sealed(hops: [string, Partial<SealingPlan>?][], text = mail): string {
  return hops.reduce((one, [name, more], index) => {
    return sealMail(one, { ...plans[name]!, instance: index + 1, ...more })
  }, text)
}

const arcOf = async (text: string, known: TxtRecords = records) =>
  (await verifyMail(text, lookupIn(known))).arc

test('a chain of three passes, with its sealers, their reports and the questions asked', async () => {
  const arc = await arcOf(sealed([['list'], ['forwarder'], ['list']]))
  assert.deepEqual(
    { ...arc, authResults: arc.authResults.map((one) => one?.authservId) },
    {
      result: 'pass',
      reason: '3 sealed',
      sealers: ['list.example', 'forwarder.example', 'list.example'],
      authResults: ['list.example', 'forwarder.example', 'list.example'],
      coversFrom: true,
      coversBody: true,
      oldestPass: 0,
      asked: ['TXT s._domainkey.list.example', 'TXT s._domainkey.forwarder.example'],
    },
  )
})

test('a mail changed between two sealers passes, and shows since when it is unchanged', async () => {
  const changed = sealed([['list']]).replace('Subject: s', 'Subject: [list] s')
  const arc = await arcOf(sealMail(changed, { ...plans['forwarder']!, instance: 2 }))
  assert.deepEqual([arc.result, arc.oldestPass], ['pass', 2])
})

const wrong: [string, () => string, string][] = [
  [
    'a changed body',
    () => `${sealed([['list']])}more\r\n`,
    'fail message signature 1: body hash did not verify',
  ],
  [
    'a report that was changed',
    () =>
      sealed([
        ['list', { names: 'from' }],
        ['forwarder', { names: 'from' }],
      ]).replace('i=1; list.example; dmarc=pass', 'i=1; list.example; dmarc=fail'),
    'fail seal 2: did not verify',
  ],
  ['cv=fail', () => sealed([['list'], ['list', { status: 'fail' }]]), 'fail arc-seal 2 says cv=fail'],
  ['a set missing', () => sealed([['list', { instance: 2 }]]), 'fail ARC set 1 is not whole'],
  [
    'an instance of 51',
    () => sealed([['list', { instance: 51 }]]),
    'fail arc-authentication-results: no instance from 1 to 50 in i=',
  ],
  [
    'a sealer without a key',
    () => sealed([['list', { domain: 'none.example' }]]),
    'fail message signature 1: no key for signature',
  ],
  [
    'DNS out of order',
    () => sealed([['list', { domain: 'down.example' }]]),
    'temperror message signature 1: key unavailable: DNS answered SERVFAIL',
  ],
  [
    'an expired message signature',
    () => sealed([['list', { messageTags: { x: '100' } }]]),
    'fail message signature 1: signature expired',
  ],
  [
    'more names of keys than are asked',
    () => sealed(Array.from({ length: 30 }, (_, index) => ['list', { selector: `s${index}` }])),
    'fail more than 20 names of keys',
  ],
  [
    'more than 256 KiB',
    () =>
      sealed(Array.from({ length: 30 }, () => ['list', { results: `a.example; x=${'y'.repeat(10_000)}` }])),
    'fail the header has more than 256 KiB or 1,000 fields: not verified',
  ],
]

test(`${wrong.length} broken chains fail`, async () => {
  for (const [what, write, wanted] of wrong) {
    const { result, reason } = await arcOf(write(), { ...records, 's._domainkey.down.example': 'temporary' })
    assert.equal(`${result} ${reason}`, wanted, what)
  }
})

test('fifty sets pass with one question for their shared key, and a further set fails', async () => {
  const fifty = Array.from({ length: 50 }, (): [string] => ['list'])
  const arc = await arcOf(sealed(fifty))
  assert.deepEqual([arc.result, arc.sealers.length, arc.asked.length], ['pass', 50, 1])
  const more = await arcOf(sealed([...fifty, ['list']]))
  assert.deepEqual([more.result, more.asked], ['fail', []])
})

const trusted = new Set(['list.example', 'forwarder.example'])
const author: AuthorDomain = {
  domain: 'author.example',
  isAligned: (domain) => domain === 'author.example' || domain.endsWith('.author.example'),
}
const reporting = (results: string): Partial<SealingPlan> => ({ results: `x.example; ${results}` })

/** The sealer that vouches and its reason, or null if no sealer vouches. */
const vouched: [string, () => string, string | null][] = [
  ['a list that saw it pass', () => sealed([['list']]), 'list.example 1 dmarc=pass'],
  ['two trusted ones', () => sealed([['list'], ['forwarder']]), 'forwarder.example 2 dmarc=pass'],
  [
    'a forwarder behind the list that broke it',
    () => sealed([['list'], ['forwarder', reporting('dmarc=fail header.from=author.example')]]),
    'list.example 1 dmarc=pass',
  ],
  ['a stranger alone', () => sealed([['evil']]), null],
  ['a stranger after a trusted one, as in a replay', () => sealed([['list'], ['evil']]), null],
  [
    'a trusted one after a stranger, by its own word',
    () => sealed([['evil'], ['list']]),
    'list.example 2 dmarc=pass',
  ],
  [
    'a trusted one that saw a failure after a stranger',
    () => sealed([['evil'], ['list', reporting('dmarc=fail')]]),
    null,
  ],
  [
    'a report about another author',
    () => sealed([['list', reporting('dmarc=pass header.from=other.example')]]),
    null,
  ],
  [
    'a report without an author',
    () => sealed([['list', reporting('dmarc=pass')]]),
    'list.example 1 dmarc=pass',
  ],
  [
    'a failure beside DKIM that is aligned',
    () => sealed([['list', reporting('dmarc=fail; dkim=pass header.d=author.example')]]),
    null,
  ],
  [
    'DKIM that is aligned',
    () => sealed([['list', reporting('dkim=pass header.i=@mail.author.example')]]),
    'list.example 1 dkim=pass',
  ],
  [
    'SPF that is aligned, and no policy',
    () => sealed([['list', reporting('dmarc=none; spf=pass smtp.mailfrom=x@author.example')]]),
    'list.example 1 spf=pass',
  ],
  ['DKIM of somebody else', () => sealed([['list', reporting('dkim=pass header.d=other.example')]]), null],
  ['DKIM that failed', () => sealed([['list', reporting('dkim=fail header.d=author.example')]]), null],
  ['a report that cannot be read', () => sealed([['list', { results: 'dmarc=pass' }]]), null],
  ['From not covered', () => sealed([['list', { names: 'to:subject' }]]), null],
  ['a From more, above', () => `From: x@evil.example\r\n${sealed([['list']])}`, null],
  ['h= that is empty', () => sealed([['list', { names: '' }]]), null],
  ['the end of the body not covered', () => `${sealed([['list', { lengthBytes: 6 }]])}more\r\n`, null],
  ['a chain that fails', () => `${sealed([['list']])}more\r\n`, null],
  ['no chain', () => mail, null],
]

test(`${vouched.length} mails show which trusted sealer vouches for them`, async () => {
  for (const [what, write, wanted] of vouched) {
    const arc = await arcOf(write())
    const found = vouchingSealer(arc, trusted, author)
    assert.equal(
      found && `${found.sealer} ${found.instance} ${found.because}`,
      wanted,
      `${what}: ${arc.reason}`,
    )
  }
})

test('a trusted sealer does not vouch for a field added above its signed fields', async () => {
  for (const added of ['From: boss@author.example', 'Subject: pay me', 'To: all@far.example']) {
    const arc = await arcOf(`${added}\r\n${sealed([['list']])}`)
    assert.deepEqual([arc.result, arc.coversFrom], ['pass', false], added)
    assert.equal(vouchingSealer(arc, trusted, author), null)
  }
})

test('a trusted sealer’s sets do not vouch for another mail', async () => {
  const sets = sealed([['list']]).slice(0, -mail.length)
  const forged = `${sets}${mail.replace('body', 'send money')}`
  assert.equal((await arcOf(forged)).result, 'fail')
  const resealed = await arcOf(sealMail(forged, { ...plans['evil']!, instance: 2 }))
  assert.deepEqual([resealed.result, resealed.oldestPass], ['pass', 2])
  assert.equal(vouchingSealer(resealed, trusted, author), null)
})
