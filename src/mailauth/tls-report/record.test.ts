// The destinations of reports about TLS, from the texts of a domain's records.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Destination, readTlsReportRecord } from './record.ts'

const mail: Destination = { email: 'tls@far.test' }
const rows: [name: string, texts: string[], destinations: Destination[]][] = [
  ['none', [], []],
  ['of another kind', ['v=spf1 -all'], []],
  ['with a mailbox', ['v=TLSRPTv1; rua=mailto:tls@far.test'], [mail]],
  ['with a mailbox and a final semicolon', ['v=TLSRPTv1;rua=mailto:tls@far.test;'], [mail]],
  ['with an encoded mailbox', ['v=TLSRPTv1; rua=mailto:tls%40far.test'], [mail]],
  ['with a mailbox and a subject', ['v=TLSRPTv1; rua=mailto:tls@far.test?subject=x'], [mail]],
  [
    'with two destinations',
    ['v=TLSRPTv1; rua=mailto:tls@far.test , https://far.test/tls?a=1'],
    [mail, { url: 'https://far.test/tls?a=1' }],
  ],
  ['with a destination twice', ['v=TLSRPTv1; rua=mailto:tls@far.test,mailto:tls@far.test'], [mail]],
  ['with an unknown field', ['v=TLSRPTv1; x=1; rua=mailto:tls@far.test'], [mail]],
  ['among others', ['v=STSv1; id=1', 'v=TLSRPTv1; rua=mailto:tls@far.test'], [mail]],
  ['twice', ['v=TLSRPTv1; rua=mailto:a@far.test', 'v=TLSRPTv1; rua=mailto:tls@far.test'], []],
  ['of another version', ['v=TLSRPTv2; rua=mailto:tls@far.test'], []],
  ['whose version is not alone', ['v=TLSRPTv10; rua=mailto:tls@far.test'], []],
  ['without rua', ['v=TLSRPTv1; x=mailto:tls@far.test'], []],
  ['with other schemes', ['v=TLSRPTv1; rua=http://far.test/,ftp://far.test/,tls@far.test'], []],
  ['with several addresses in one URI', ['v=TLSRPTv1; rua=mailto:a@far.test%2Cb@far.test'], []],
  ['with a broken encoding', ['v=TLSRPTv1; rua=mailto:%zz@far.test'], []],
  [
    'with more than four',
    [`v=TLSRPTv1; rua=${[1, 2, 3, 4, 5].map((n) => `mailto:t${n}@far.test`).join()}`],
    [1, 2, 3, 4].map((n) => ({ email: `t${n}@far.test` })),
  ],
  ['that is too long', [`v=TLSRPTv1; rua=mailto:tls@far.test; x=${'y'.repeat(5_000)}`], []],
]

for (const [name, texts, destinations] of rows)
  test(`a record for TLS reports ${name} names ${destinations.length} destinations`, () => {
    assert.deepEqual(readTlsReportRecord(texts), destinations)
  })

test('any texts give up to four destinations, each an address or a secure URL', () => {
  const part = fc.oneof(
    fc.constantFrom('v=TLSRPTv1', ';', 'rua=', 'mailto:', 'https://', ',', 'a@b.test', '%', ' '),
    fc.string(),
  )
  const text = fc.array(part, { maxLength: 30 }).map((parts) => `v=TLSRPTv1;${parts.join('')}`)
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), (texts) => {
      const found = readTlsReportRecord(texts)
      assert.ok(found.length <= 4)
      for (const one of found)
        assert.match('url' in one ? one.url : one.email, /^(?:https:\/\/[\x21-\x7e]+|[^@\s]+@[^@\s]+)$/i)
    }),
  )
})
