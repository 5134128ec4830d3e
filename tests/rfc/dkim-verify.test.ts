// Tests DKIM verification with published cases, and against four other verifiers over a table of generated mails.
import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { type DkimKey, generateDkimKey, signDkim } from '../../src/mailauth/dkim-sign.ts'
import { type DkimRecords, findJudges } from '../support/dkim-judges.ts'
import { type Form, type SigningPlan, signatureOf, signMail } from '../support/sign-mail.ts'
import { lookupIn, type TxtRecords, verifyMail } from '../support/verify-mail.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const suite = join(testdata, 'dkim-chasquid')
assert.ok(existsSync(suite) || !process.env['CI'], `${suite} is absent`)
const cases = existsSync(suite)
  ? readdirSync(suite)
      .filter((name) => name.endsWith('.msg'))
      .map((name) => join(suite, name.slice(0, -4)))
  : []
const skip = cases.length === 0 ? 'the DKIM cases are absent (POSTHORN_TESTDATA)' : false

interface Published {
  Results: { Domain: string; Selector: string; State: 'SUCCESS' | 'TEMPFAIL' | 'PERMFAIL' }[]
}

/** Cases that we decide differently: our result, the case's wish, and the RFC sentence that justifies us. */
const decided: Record<string, { found: string[]; because: string }> = {
  '02-too_many_headers': {
    found: Array(7).fill('SUCCESS'),
    because:
      'wants the first five of seven; RFC 6376 6.1: "A Verifier MAY limit the number of signatures it tries, in order to avoid denial-of-service attacks": here it is eight',
  },
  '09-limited_body': {
    found: ['PERMFAIL', 'SUCCESS', 'SUCCESS'],
    because:
      'wants a pass for l= before the end of the body; RFC 6376 8.2: "Assessors might wish to ignore signatures that use the tag": here it is "policy", for what follows anybody can have added',
  },
}

test('RFC 6376: the published DKIM cases get their verdicts', { skip }, async (t) => {
  const wrong: string[] = []
  for (const base of cases) {
    const name = base.slice(suite.length + 1)
    const read = (kind: string) => (existsSync(base + kind) ? readFileSync(base + kind, 'latin1') : '')
    const { dkim } = await verifyMail(
      Buffer.from(read('.msg').replace(/\r?\n/g, '\r\n'), 'latin1'),
      lookupIn(readZone(read('.dns'))),
      { nowSeconds: 1_750_000_000 },
    )
    const results = read('.result')
    const published = results === '' ? [] : (JSON.parse(results) as Published).Results
    const asPublished = published.map(({ State }) => State)
    const wanted = decided[name]?.found ?? asPublished
    assert.ok(!(name in decided) || wanted.join() !== asPublished.join(), `${name} is no exception`)
    const found = dkim.map(({ result }) => states[result] ?? 'PERMFAIL')
    if (wanted.join() !== found.join()) wrong.push(`${name}: ${found}, not ${wanted}`)
  }
  const exceptions = Object.entries(decided)
  const equal = cases.length - wrong.length - exceptions.length
  t.diagnostic(`dkim-chasquid: ${equal} of ${cases.length} as published, ${exceptions.length} exceptions`)
  for (const [name, { because }] of exceptions) t.diagnostic(`${name} ${because}`)
  assert.deepEqual(wrong, [])
})

const states: Record<string, Published['Results'][0]['State']> = { pass: 'SUCCESS', temperror: 'TEMPFAIL' }

/** Parses `name: text`, with a backslash before continuation lines. TEMPERROR and PERMERROR are answers of DNS. */
function readZone(text: string): TxtRecords {
  const records: Record<string, string[] | 'temporary'> = {}
  for (const [, name = '', value = ''] of text.replace(/\\\n\s*/g, '').matchAll(/^(\S+): *(.*)$/gm)) {
    const before = records[name]
    if (value === 'TEMPERROR') records[name] = 'temporary'
    else if (value !== 'PERMERROR') records[name] = [...(Array.isArray(before) ? before : []), value.trim()]
  }
  return records
}

const judges = findJudges()
const records: DkimRecords = {}
const keys: Record<string, DkimKey> = {}
let smallKey: KeyObject
const domain = 'signer.example'

before(async () => {
  for (const algorithm of ['rsa-sha256', 'ed25519-sha256'] as const) {
    const { privatePem, publicRecord } = await generateDkimKey(algorithm)
    const selector = algorithm.slice(0, 3)
    keys[selector] = { domain, selector, algorithm, privateKey: createPrivateKey(privatePem) }
    records[`${selector}._domainkey.${domain}`] = publicRecord
    records[`strict-${selector}._domainkey.${domain}`] = publicRecord.replace(' p=', ' t=s; p=')
    records[`trying-${selector}._domainkey.${domain}`] = publicRecord.replace(' p=', ' t=y; p=')
    records[`under_score-${selector}._domainkey.${domain}`] = publicRecord
    records[`revoked-${selector}._domainkey.${domain}`] = publicRecord.replace(/ p=.*/, ' p=')
    records[`sha1-${selector}._domainkey.${domain}`] = publicRecord.replace(' p=', ' h=sha1; p=')
    records[`web-${selector}._domainkey.${domain}`] = publicRecord.replace(' p=', ' s=web; p=')
    records[`notes-${selector}._domainkey.${domain}`] = publicRecord.replace(' p=', ' n=a note; x=y; p=')
    records[`bare-${selector}._domainkey.${domain}`] = publicRecord.replace('v=DKIM1; ', '')
  }
  const small = generateKeyPairSync('rsa', { modulusLength: 768 })
  smallKey = small.privateKey
  const der = small.publicKey.export({ type: 'spki', format: 'der' })
  records[`small._domainkey.${domain}`] = `v=DKIM1; k=rsa; p=${der.toString('base64')}`
})

function planOf(
  selector: 'rsa' | 'ed2',
  header: Form,
  body: Form,
  more: Partial<SigningPlan> = {},
): SigningPlan {
  const { algorithm, privateKey } = keys[selector]!
  return { domain, selector, algorithm, privateKey, header, body, names: 'from:to:subject:date', ...more }
}

const head = `From: Ann <ann@${domain}>\r\nTo: bob@far.example\r\nSubject: A subject\r\nDate: Sat, 21 Nov 2026 09:00:00 +0000\r\n`
const bodies: [string, string][] = [
  ['a text', 'one two\r\nthree\r\n'],
  ['an empty body', ''],
  ['empty lines only', '\r\n\r\n\r\n'],
  ['empty lines at the end', 'one\r\n\r\n\r\n'],
  ['white space everywhere', ' a  b\t\tc \t d \r\n\t\r\n \r\ne\t\r\n \r\n'],
  ['lines of white space at the end', 'one\r\n \r\n\t\r\n'],
  ['no line end at the end', 'one\r\ntwo'],
  ['8-bit bytes', '\xfc\xff \xa0\r\n'],
]
const headers: [string, string][] = [
  ['folded fields', `${head}References: <1@a>\r\n\t<2@a>\r\n \t <3@a>\r\n`],
  ['white space around values', `${head}Message-ID: \t <1@a>  \r\nCc:x@y.example\r\n`],
  ['names in odd case', `${head}MESSAGE-id: <1@a>\r\nmime-VERSION: 1.0\r\n`],
  ['fields of one name', `${head}Received: one\r\nReceived: two\r\nReceived: three\r\n`],
]

interface Row {
  what: string
  mail: Buffer
  isRsaOnly: boolean
}

/** Every canonicalization with each kind of key, with unmodified bodies and headers. */
function* wellSigned(): Generator<Row> {
  for (const selector of ['rsa', 'ed2'] as const)
    for (const header of ['simple', 'relaxed'] as const)
      for (const body of ['simple', 'relaxed'] as const) {
        const form = `${selector} ${header}/${body}`
        const isRsaOnly = selector === 'rsa'
        for (const [what, text] of bodies) {
          const mail = signMail(`${head}\r\n${text}`, [planOf(selector, header, body)])
          yield { what: `${form}, ${what}`, mail, isRsaOnly }
        }
        for (const [what, fields] of headers) {
          const names = 'from:from:to:subject:date:references:message-id:cc:mime-version:received:received'
          const mail = signMail(`${fields}\r\nbody\r\n`, [planOf(selector, header, body, { names })])
          yield { what: `${form}, ${what}`, mail, isRsaOnly }
        }
      }
}

const changes: [string, (mail: string) => string][] = [
  ['another word', (mail) => mail.replace('three', 'four')],
  ['a space more between words', (mail) => mail.replace('one two', 'one  two')],
  ['a space at the end of a line', (mail) => mail.replace('three\r\n', 'three \r\n')],
  ['empty lines more at the end', (mail) => `${mail}\r\n\r\n`],
  ['a line more', (mail) => `${mail}four\r\n`],
  ['another subject', (mail) => mail.replace('A subject', 'B subject')],
  ['a space more in the subject', (mail) => mail.replace('A subject', 'A  subject')],
  ['a name in other case', (mail) => mail.replace('Subject:', 'SUBJECT:')],
  ['a folded subject', (mail) => mail.replace('A subject', 'A\r\n subject')],
  ['a From more, above', (mail) => `From: x@evil.example\r\n${mail}`],
  ['a Subject more, below', (mail) => mail.replace('Date:', 'Subject: another\r\nDate:')],
  ['a field that is not signed', (mail) => `X-Other: one\r\n${mail}`],
]

/** Mails that are changed after signing. */
function* mangled(): Generator<Row> {
  for (const header of ['simple', 'relaxed'] as const)
    for (const body of ['simple', 'relaxed'] as const)
      for (const [what, change] of changes) {
        const plan = planOf('rsa', header, body, { names: 'from:from:to:subject:date' })
        const mail = signMail(`${head}\r\none two\r\nthree\r\n`, [plan]).toString('latin1')
        yield {
          what: `${header}/${body}, ${what}`,
          mail: Buffer.from(change(mail), 'latin1'),
          isRsaOnly: true,
        }
      }
}

const now = Math.floor(Date.now() / 1000)
const tagged: [string, Partial<SigningPlan>][] = [
  ['l= that is all of it', { lengthBytes: 16 }],
  ['l= that is less', { lengthBytes: 9 }],
  ['l=0', { lengthBytes: 0 }],
  ['x= to come', { tags: { t: `${now - 10}`, x: `${now + 1000}` } }],
  ['x= over', { tags: { t: `${now - 1000}`, x: `${now - 500}` } }],
  ['x= before t=', { tags: { t: `${now + 2000}`, x: `${now + 1000}` } }],
  ['i= of the domain', { tags: { i: `ann@${domain}` } }],
  ['i= below the domain', { tags: { i: `@sub.${domain}` } }],
  ['i= of another domain', { tags: { i: '@other.example' } }],
  ['i= of what only ends so', { tags: { i: `@x${domain}` } }],
  ['q=dns/txt', { tags: { q: 'dns/txt' } }],
  ['q= of another method', { tags: { q: 'https/x' } }],
  ['a tag that nobody knows', { tags: { unknown: 'value' } }],
  ['z=', { tags: { z: 'From:ann@signer.example|Subject:x' } }],
  ['v=2', { tags: { v: '2' } }],
  ['no v=', { tags: { v: null } }],
  ['no bh=', { tags: { bh: null } }],
  ['no d=', { tags: { d: null } }],
  ['no s=', { tags: { s: null } }],
  ['no a=', { tags: { a: null } }],
  ['no h=', { tags: { h: null } }],
  ['no c=', { header: 'simple', body: 'simple', tags: { c: null } }],
  ['c= with one half', { header: 'relaxed', body: 'simple', tags: { c: 'relaxed' } }],
  ['c= of nobody', { tags: { c: 'nofws' } }],
  ['h= without From', { names: 'to:subject:date' }],
  ['h= in odd case, with white space', { names: 'From : TO:\r\n\tSubject :date' }],
  ['h= of fields that are not there', { names: 'from:x-none:to:x-none' }],
  ['rsa-sha1', { algorithm: 'rsa-sha1' }],
  ['a key of 768 bits', { selector: 'small' }],
  ...['strict', 'trying', 'revoked', 'sha1', 'web', 'notes', 'bare', 'under_score'].map(
    (kind): [string, Partial<SigningPlan>] => [`the key ${kind}`, { selector: `${kind}-rsa` }],
  ),
  ['the key strict with i= below', { selector: 'strict-rsa', tags: { i: `@sub.${domain}` } }],
]

/** Right and wrong tags, each correctly signed. */
function* withTags(): Generator<Row> {
  for (const [what, more] of tagged) {
    const privateKey = what.includes('768') ? smallKey : keys['rsa']!.privateKey
    const plan = planOf('rsa', 'relaxed', 'relaxed', { privateKey, ...more })
    yield { what, mail: signMail(`${head}\r\none two\r\nthree\r\n`, [plan]), isRsaOnly: true }
  }
  const mail = `${head}\r\none two\r\nthree\r\n`
  const plan = planOf('rsa', 'relaxed', 'relaxed')
  const twice = signatureOf(mail, plan)
  yield {
    what: 'a tag twice',
    mail: Buffer.from(twice.replace('v=1;', 'v=1; v=1;') + mail),
    isRsaOnly: true,
  }
  for (const name of ['From', 'Subject', 'X-Other']) {
    const doubled = `${name}: another@evil.example\r\n${signMail(mail, [plan]).toString('latin1')}`
    yield { what: `a ${name} more, not over-signed`, mail: Buffer.from(doubled, 'latin1'), isRsaOnly: true }
  }
  const eight = Array.from({ length: 8 }, () => plan)
  yield { what: 'eight signatures', mail: signMail(mail, eight), isRsaOnly: true }
  const broken = [...eight.slice(1), planOf('rsa', 'relaxed', 'relaxed', { tags: { bh: 'AAAA' } })]
  yield { what: 'eight signatures, one of them broken', mail: signMail(mail, broken), isRsaOnly: true }
  const both = [planOf('ed2', 'relaxed', 'relaxed'), plan]
  yield { what: 'both kinds of keys', mail: signMail(mail, both), isRsaOnly: false }
}

/** Cases in which the others agree and we differ. */
const apart: Record<string, string> = {
  'l= that is less': 'RFC 6376 8.2: "Assessors might wish to ignore signatures that use the tag"',
  'rsa-sha1': 'RFC 8301 3.1: "rsa-sha1 MUST NOT be used for signing or verifying"',
  'a Subject more, not over-signed':
    'RFC 6376 8.15: one field added above another that may stand once is seen in its stead, under a good signature',
}

test('verdicts equal those of other verifiers, wherever these agree', async (t) => {
  // A single verifier would decide alone, even when it is wrong.
  if (judges.length < 4) return t.skip('wants opendkim, dkimpy and Mail::DKIM')
  const rows = [...wellSigned(), ...mangled(), ...withTags()]
  const theirs = await Promise.all(
    judges.map(async (judge) => {
      const fit = rows.filter(({ isRsaOnly }) => isRsaOnly || judge.knowsEd25519)
      const verdicts = await judge.verify(
        fit.map(({ mail }) => mail),
        records,
      )
      return new Map(fit.map(({ what }, index) => [what, verdicts[index]!]))
    }),
  )
  const lookup = lookupIn(Object.fromEntries(Object.entries(records).map(([name, text]) => [name, [text]])))
  let agreed = 0
  let equal = 0
  let passed = 0
  const differing: string[] = []
  const split: string[] = []
  for (const { what, mail } of rows) {
    const { dkim } = await verifyMail(mail, lookup)
    const isPass = dkim.length > 0 && dkim.every(({ result }) => result === 'pass')
    const others = judges.flatMap(({ name }, index) => {
      const verdict = theirs[index]!.get(what)
      return verdict === undefined ? [] : [{ name, verdict }]
    })
    const [first] = others
    const ours = `${what}: ${dkim.map(({ result, reason }) => `${result} (${reason})`).join(', ')}`
    if (others.some(({ verdict }) => verdict !== first!.verdict)) {
      const passing = others.filter(({ verdict }) => verdict).map(({ name }) => name)
      split.push(`${ours}; passes with ${passing.join(', ')} only`)
      continue
    }
    agreed++
    if (isPass) passed++
    if (isPass === first!.verdict) equal++
    else if (!(what in apart)) differing.push(`${ours}; the others pass: ${first!.verdict}`)
  }
  const names = judges.map(({ name }) => name).join(', ')
  t.diagnostic(
    `${rows.length} mails; ${names} agree on ${agreed}, and we with them on ${equal}; ${passed} pass`,
  )
  for (const [what, because] of Object.entries(apart)) t.diagnostic(`apart: ${what}: ${because}`)
  for (const one of split) t.diagnostic(`they differ: ${one}`)
  assert.deepEqual(differing, [])
  assert.ok(agreed > 150)
})

test('our own signatures verify here', async () => {
  const lookup = lookupIn(Object.fromEntries(Object.entries(records).map(([name, text]) => [name, [text]])))
  for (const [what, body] of bodies) {
    const mail = Buffer.from(`${head}\r\n${body}`, 'latin1')
    const signed = Buffer.concat([await signDkim(mail, Object.values(keys), new Date()), mail])
    const { dkim, arc } = await verifyMail(signed, lookup)
    assert.deepEqual(
      dkim.map(({ result, selector, coversBody }) => [result, selector, coversBody]),
      [
        ['pass', 'rsa', true],
        ['pass', 'ed2', true],
      ],
      what,
    )
    assert.equal(arc.result, 'none')
  }
})
