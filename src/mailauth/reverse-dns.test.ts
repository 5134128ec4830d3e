// Checks reverse DNS against RFC 8601 2.7.3.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookupIn, zoneOf } from '../../tests/support/zone.ts'
import { checkReverseDns } from './reverse-dns.ts'

type Names = Parameters<typeof zoneOf>[0]

const reverse = '1.2.0.192.in-addr.arpa'
const reverse6 = `1.0.0.0.${'0.'.repeat(20)}8.b.d.0.1.0.0.2.ip6.arpa`
const many = Array.from({ length: 1000 }, (_, index) => `h${index}.example`)

const verdicts: [string, string, Names, string, string | null][] = [
  [
    'a name that has the address',
    '192.0.2.1',
    { [reverse]: { PTR: ['A.Example.'] }, 'a.example': { A: ['192.0.2.1'] } },
    'pass',
    'a.example',
  ],
  [
    'the second name',
    '192.0.2.1',
    { [reverse]: { PTR: ['b.example', 'a.example'] }, 'a.example': { A: ['192.0.2.2', '192.0.2.1'] } },
    'pass',
    'a.example',
  ],
  [
    'IPv6',
    '2001:db8::1',
    { [reverse6]: { PTR: ['a.example'] }, 'a.example': { AAAA: ['2001:0db8:0::1'] } },
    'pass',
    'a.example',
  ],
  [
    'IPv4 in IPv6',
    '::ffff:192.0.2.1',
    { [reverse]: { PTR: ['a.example'] }, 'a.example': { A: ['192.0.2.1'] } },
    'pass',
    'a.example',
  ],
  [
    'a name of another',
    '192.0.2.1',
    { [reverse]: { PTR: ['a.example'] }, 'a.example': { A: ['192.0.2.2'] } },
    'fail',
    null,
  ],
  ['a name without an address', '192.0.2.1', { [reverse]: { PTR: ['a.example'] } }, 'fail', null],
  [
    'a name that does not answer',
    '192.0.2.1',
    { [reverse]: { PTR: ['a.example'] }, 'a.example': 'silent' },
    'temperror',
    null,
  ],
  [
    'one that does not, and one that has it',
    '192.0.2.1',
    {
      [reverse]: { PTR: ['b.example', 'a.example'] },
      'b.example': 'silent',
      'a.example': { A: ['192.0.2.1'] },
    },
    'pass',
    'a.example',
  ],
  ['no name', '192.0.2.1', {}, 'permerror', null],
  ['no answer', '192.0.2.1', { [reverse]: 'silent' }, 'temperror', null],
  [
    'an invalid host name',
    '192.0.2.1',
    { [reverse]: { PTR: ['a\r\nb.example', 'a"b.example', '', `${'a'.repeat(64)}.example`] } },
    'fail',
    null,
  ],
  [
    'the eleventh name',
    '192.0.2.1',
    { [reverse]: { PTR: many }, 'h10.example': { A: ['192.0.2.1'] } },
    'fail',
    null,
  ],
]

for (const [what, ip, names, result, name] of verdicts) {
  test(`reverse DNS: ${what} is ${result}`, async () => {
    const verdict = await checkReverseDns(lookupIn(zoneOf(names)), ip)
    assert.deepEqual([verdict.result, verdict.name], [result, name], verdict.reason)
    assert.ok(verdict.asked.length <= 11)
  })
}
