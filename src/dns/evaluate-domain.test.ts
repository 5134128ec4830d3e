// The verdicts that follow from every kind of answer, for each record and for ownership, sending and receiving.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inCpuTime } from '../../tests/support/cpu-time.ts'
import { type DomainRecord, listDomainRecords, questionOf } from './domain-records.ts'
import { evaluate } from './evaluate-domain.ts'
import type { RecordAnswer } from './lookup-domain.ts'

const challenge = 'posthorn-challenge=0123456789abcdef'
const mailHost = 'MX.host.example'
const rsa = 'v=DKIM1; k=rsa; p=AAAA'
const ed25519 = 'v=DKIM1; k=ed25519; p=BBBB'
const records = listDomainRecords({
  name: 'life.example',
  challenge,
  mailHost,
  mtaStsMode: 'testing',
  keys: [
    { selector: 'r', publicRecord: rsa, state: 'active' },
    { selector: 'e', publicRecord: ed25519, state: 'pending' },
    { selector: 'o', publicRecord: 'v=DKIM1; k=rsa; p=CCCC', state: 'retired' },
  ],
})
const texts = (...values: string[]): RecordAnswer => ({ status: 'ok', records: values })
const hosts = (...values: [number, string][]): RecordAnswer => ({
  status: 'ok',
  records: values.map(([preference, exchange]) => ({ preference, exchange })),
})
const temporary: RecordAnswer = { status: 'temporary', reason: 'DNS answered SERVFAIL' }
const nodata: RecordAnswer = { status: 'nodata' }
const nxdomain: RecordAnswer = { status: 'nxdomain' }

/** Correct answers for all records, except for `changes`. Their keys are `TYPE name`, the names without their domain. */
function found(changes: Record<string, RecordAnswer> = {}): Map<string, RecordAnswer> {
  const right = records.map((record): [string, RecordAnswer] => [
    questionOf(record),
    record.type === 'MX' ? hosts([10, 'mx.host.example']) : texts(record.value),
  ])
  const changed = Object.entries(changes).map(([question, answer]): [string, RecordAnswer] => {
    const [type, name] = question.split(' ')
    return [`${type} ${[name, 'life.example'].filter(Boolean).join('.')}`, answer]
  })
  return new Map([...right, ...changed])
}

const purpose = (name: DomainRecord['purpose'], index = 0) =>
  questionOf(records.filter((record) => record.purpose === name)[index]!)

const verdicts: [what: string, record: string, answer: RecordAnswer, status: string][] = [
  ['the challenge', purpose('ownership'), texts(challenge), 'valid'],
  ['the challenge among others', purpose('ownership'), texts('v=spf1 -all', challenge), 'valid'],
  ['the challenge of another organization', purpose('ownership'), texts('posthorn-challenge=ff'), 'mismatch'],
  ['a wildcard’s text', purpose('ownership'), texts('v=spf1 -all'), 'mismatch'],
  ['the challenge in capitals', purpose('ownership'), texts(challenge.toUpperCase()), 'mismatch'],
  ['the challenge with more behind it', purpose('ownership'), texts(`${challenge} x`), 'mismatch'],
  ['an empty text', purpose('ownership'), texts(''), 'mismatch'],
  ['no such name', purpose('ownership'), nxdomain, 'missing'],
  ['no such type', purpose('ownership'), nodata, 'missing'],
  ['SERVFAIL', purpose('ownership'), temporary, 'error'],

  ['our key', purpose('dkim'), texts(rsa), 'valid'],
  ['our key, written otherwise', purpose('dkim'), texts('p = AA AA ;s=email; h=sha1:sha256; t=y'), 'valid'],
  ['another key', purpose('dkim'), texts('v=DKIM1; k=rsa; p=AAAB'), 'mismatch'],
  ['a revoked key', purpose('dkim'), texts('v=DKIM1; k=rsa; p='), 'mismatch'],
  ['a key of another algorithm', purpose('dkim', 1), texts('v=DKIM1; p=BBBB'), 'mismatch'],
  ['a key for SHA-1 only', purpose('dkim'), texts('v=DKIM1; h=sha1; p=AAAA'), 'mismatch'],
  ['a key for another service', purpose('dkim'), texts('v=DKIM1; s=tlsrpt; p=AAAA'), 'mismatch'],
  ['another version', purpose('dkim'), texts('v=DKIM2; k=rsa; p=AAAA'), 'mismatch'],
  ['a tag that stands twice', purpose('dkim'), texts('k=rsa; p=ZZZZ; p=AAAA'), 'mismatch'],
  ['two keys at one selector', purpose('dkim'), texts(rsa, 'v=DKIM1; k=rsa; p=DDDD'), 'mismatch'],
  ['64 kB of text', purpose('dkim'), texts('p='.padEnd(65_000, ';')), 'mismatch'],

  ['our host', purpose('mx'), hosts([10, 'mx.host.example']), 'valid'],
  ['our host before another', purpose('mx'), hosts([20, 'b.example'], [10, 'mx.host.example']), 'valid'],
  ['our host beside another', purpose('mx'), hosts([10, 'b.example'], [10, 'mx.host.example']), 'valid'],
  ['our host behind another', purpose('mx'), hosts([20, 'mx.host.example'], [10, 'b.example']), 'mismatch'],
  ['other hosts', purpose('mx'), hosts([10, 'b.example']), 'mismatch'],
  ['a null MX', purpose('mx'), hosts([0, '']), 'mismatch'],
  [
    '100 hosts',
    purpose('mx'),
    hosts(...Array.from({ length: 100 }, (_, i): [number, string] => [i, `${i}.example`])),
    'mismatch',
  ],

  ['our policy', purpose('spf'), texts('v=spf1 a:mx.host.example -all'), 'valid'],
  [
    'a policy with more in it',
    purpose('spf'),
    texts('V=SPF1 ip4:192.0.2.1 +A:mx.host.example ~all'),
    'valid',
  ],
  ['the policy of its MX', purpose('spf'), texts('v=spf1 mx -all'), 'valid'],
  ['a policy against us', purpose('spf'), texts('v=spf1 -a:mx.host.example -all'), 'mismatch'],
  ['two policies', purpose('spf'), texts('v=spf1 mx -all', 'v=spf1 a:mx.host.example -all'), 'mismatch'],
  ['no policy among the texts', purpose('spf'), texts('v=spf10 mx', 'x'), 'mismatch'],

  ['any DMARC policy', purpose('dmarc'), texts('v=DMARC1; p=reject'), 'valid'],
  ['two DMARC policies', purpose('dmarc'), texts('v=DMARC1; p=none', 'v=DMARC1; p=reject'), 'mismatch'],
  ['any MTA-STS id', purpose('mta_sts'), texts('v=STSv1; id=77;'), 'valid'],
  ['any TLS-RPT address', purpose('tls_rpt'), texts('v=TLSRPTv1;rua=https://r.example'), 'valid'],
  ['a text of another kind', purpose('tls_rpt'), texts('v=spf1 -all'), 'mismatch'],
]

for (const [what, question, answer, status] of verdicts) {
  test(`check 56: ${what} is ${status}`, () => {
    const verdict = evaluate(records, new Map([[question, answer]]), 'nobody').records.get(question)!
    assert.equal(verdict.status, status)
    assert.equal(verdict.reason === null, status === 'valid')
  })
}

const capabilities: [what: string, changes: Record<string, RecordAnswer>, wanted: string][] = [
  ['everything', {}, 'holds holds holds'],
  ['no challenge', { 'TXT _posthorn-challenge': nodata }, 'broken broken broken'],
  ['no MX', { 'MX ': nodata }, 'holds holds broken'],
  ['no return path', { 'MX bounce': nxdomain }, 'holds broken holds'],
  ['neither key', { 'TXT r._domainkey': nxdomain, 'TXT e._domainkey': nxdomain }, 'holds broken holds'],
  ['one key', { 'TXT r._domainkey': nxdomain }, 'holds holds holds'],
  ['one key, the other not to be had', { 'TXT r._domainkey': temporary }, 'holds holds holds'],
  [
    'a wrong key, the other not to be had',
    { 'TXT r._domainkey': nodata, 'TXT e._domainkey': temporary },
    'holds unknown holds',
  ],
  [
    'none of the recommended',
    { 'TXT _dmarc': nodata, 'TXT _mta-sts': nodata, 'TXT _smtp._tls': nodata },
    'holds holds holds',
  ],
  ['no SPF', { 'TXT bounce': nodata }, 'holds holds holds'],
  ['challenge not to be had', { 'TXT _posthorn-challenge': temporary }, 'unknown unknown unknown'],
  [
    'challenge not to be had and no MX',
    { 'TXT _posthorn-challenge': temporary, 'MX ': nodata },
    'unknown unknown broken',
  ],
  [
    'only the retired key',
    { 'TXT r._domainkey': nodata, 'TXT e._domainkey': nodata, 'TXT o._domainkey': texts('p=CCCC') },
    'holds broken holds',
  ],
]

for (const [what, changes, wanted] of capabilities) {
  test(`check 56: with ${what}, ownership, sending and receiving are judged ${wanted}`, () => {
    const { ownership, outbound, inbound } = evaluate(records, found(changes), 'nobody')
    assert.equal([ownership, outbound, inbound].map(({ result }) => result).join(' '), wanted)
    for (const { result, reasons } of [ownership, outbound, inbound])
      assert.equal(reasons.length === 0, result === 'holds')
  })
}

test('check 56: a domain that another organization proved is broken, whatever DNS says', () => {
  const { ownership, inbound } = evaluate(records, found(), 'another')
  assert.equal(ownership.result, 'broken')
  assert.match(ownership.reasons.join(), /Another organization/)
  assert.equal(inbound.result, 'broken')
})

test('a record without a look-up has no verdict, and a record that cannot exist is an error', () => {
  const name = `${`${'a'.repeat(62)}.`.repeat(3)}${'b'.repeat(45)}.example`
  const long = listDomainRecords({ name, challenge, mailHost, mtaStsMode: 'testing', keys: [] })
  const { records: judged, ownership } = evaluate(long, new Map(), 'nobody')
  assert.equal(judged.get(`TXT _posthorn-challenge.${name}`)?.status, 'error')
  assert.equal(judged.has(`MX ${name}`), false)
  assert.equal(ownership.result, 'unknown')
  assert.match(ownership.reasons.join(), /characters long/)
})

test('check 52: any answer is judged in linear time, and shown bounded and well-formed', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 100 }).map((start) => start.padEnd(700, start)),
    fc.constantFrom(
      ';'.repeat(65_000),
      'p='.repeat(30_000),
      '\ud800\u0000\u0085é',
      `v=spf1 ${'a '.repeat(30_000)}`,
    ),
  )
  const answer = fc.oneof(
    fc.array(text, { minLength: 1, maxLength: 25, size: 'small' }).map((values) => texts(...values)),
    fc
      .array(fc.tuple(fc.nat(65_535), text), { minLength: 1, maxLength: 25, size: 'small' })
      .map((values) => hosts(...values)),
    fc.constantFrom(temporary, nodata, nxdomain),
  )
  fc.assert(
    fc.property(fc.array(answer, { minLength: records.length, maxLength: records.length }), (answers) => {
      const given = new Map(records.map((record, index) => [questionOf(record), answers[index]!]))
      const judged = inCpuTime(2_000, () => evaluate(records, given, 'nobody').records)
      for (const { status, observed } of judged.values()) {
        assert.ok(observed.length <= 20)
        assert.ok(
          observed.every((shown) => shown.length <= 600 && shown.isWellFormed() && !/\p{Cc}/u.test(shown)),
        )
        if (status === 'missing' || status === 'error') assert.deepEqual(observed, [])
      }
    }),
  )
})
