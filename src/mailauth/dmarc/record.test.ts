// Parses DMARC records, also records with errors.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DmarcRecord, parseDmarcRecord } from './record.ts'

const defaults: Omit<DmarcRecord, 'text' | 'faults'> = {
  p: 'none',
  sp: null,
  np: null,
  rua: [],
  adkim: 'relaxed',
  aspf: 'relaxed',
  psd: 'unsaid',
  isTesting: false,
}
const mailbox = 'mailto:d@x.example'

const sound: [text: string, record: Partial<DmarcRecord>][] = [
  ['v=DMARC1; p=none', {}],
  ['v=DMARC1;p=reject;', { p: 'reject' }],
  ['V = DMARC1 ;\tp = Reject', { p: 'reject' }],
  ['v=DMARC1; adkim=s; aspf=S; p=quarantine', { p: 'quarantine', adkim: 'strict', aspf: 'strict' }],
  ['v=DMARC1; p=reject; sp=none; np=quarantine', { p: 'reject', sp: 'none', np: 'quarantine' }],
  ['v=DMARC1; p=none; psd=y', { psd: 'yes' }],
  ['v=DMARC1; p=none; psd=n; t=n', { psd: 'no' }],
  ['v=DMARC1; p=reject; t=y', { p: 'reject', isTesting: true }],
  [`v=DMARC1; p=none; rua=${mailbox} ,\t${mailbox}!10m`, { rua: [mailbox, `${mailbox}!10m`] }],
  // RFC 9989 C.5.2: former tags count as unknown now.
  ['v=DMARC1; p=reject; pct=0; rf=afrf; ri=86400; x=y', { p: 'reject' }],
  ['v=DMARC1; p=none; rua=https://x.example/in', { rua: ['https://x.example/in'] }],
]

for (const [text, record] of sound) {
  test(`a DMARC record is read: ${text}`, () => {
    assert.deepEqual(parseDmarcRecord(text), { ...defaults, ...record, text, faults: [] })
  })
}

const faulty: [text: string, record: Partial<DmarcRecord>, faults: string[]][] = [
  ['v=DMARC1', { p: null }, ['there is no p tag']],
  ['v=DMARC1; rua=nobody', { p: null }, ['rua names something that is no URI', 'there is no p tag']],
  [`v=DMARC1; rua=${mailbox}`, { p: 'none', rua: [mailbox] }, ['there is no p tag']],
  ['v=DMARC1; p=deny', { p: null }, ['p has a value that it cannot have']],
  [
    `v=DMARC1; p=reject; sp=deny; rua=${mailbox}`,
    { p: 'none', rua: [mailbox] },
    ['sp has a value that it cannot have'],
  ],
  ['v=DMARC1; p=reject; np=', { p: 'reject' }, ['something that is no tag']],
  ['v=DMARC1; p=reject; adkim=x', { p: 'reject' }, ['adkim has a value that it cannot have']],
  ['v=DMARC1; p=reject; p=none', { p: 'reject' }, ['a second p tag']],
  ['v=DMARC1; p=reject; =; ;; sp', { p: 'reject' }, ['something that is no tag', 'something that is no tag']],
  ['v=DMARC1; p=reject; adkim=s\u00e9', { p: 'reject' }, ['something that is no tag']],
  ['v=DMARC1; p=constructor', { p: null }, ['p has a value that it cannot have']],
]

for (const [text, record, faults] of faulty) {
  test(`a DMARC record is read with its faults: ${text}`, () => {
    assert.deepEqual(parseDmarcRecord(text), { ...defaults, ...record, text, faults })
  })
}

const none = [
  ...['', 'v=DMARC2; p=none', 'v=dmarc1; p=none', 'p=none; v=DMARC1', 'v=DMARC1p=none', 'DMARC1; p=none'],
  ...['v=spf1 -all', `v=DMARC1; p=none; x=${'a'.repeat(4096)}`],
]

for (const text of none) {
  test(`a text is refused as a DMARC record: ${text.slice(0, 40)}`, () =>
    assert.equal(parseDmarcRecord(text), null))
}

test('any record is read within bounds', () => {
  const words = ['v=DMARC1', ';', 'p=', 'rua=', `${mailbox},`, 'none', 'reject', ' ', '=', '!', 'psd=y', '\0']
  const text = fc.array(fc.constantFrom(...words), { maxLength: 300 }).map((parts) => parts.join(''))
  const property = fc.property(text, (given) => {
    const record = parseDmarcRecord(`v=DMARC1;${given}`)
    if (record === null) return
    assert.ok(record.rua.length <= 10 && record.faults.length <= 10)
    assert.ok(record.p !== null || record.rua.length === 0)
  })
  fc.assert(property, { numRuns: 500 })
})
