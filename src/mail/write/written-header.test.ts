// Tests of written-header.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWrittenHeader } from './written-header.ts'

const at = new Date('2026-11-21T09:00:00Z')
const whole = ['From: Ada <ada@x.test>', 'Date: Sat, 21 Nov 2026 08:00:00 +0000', 'Message-ID: <1@x.test>']

function read(lines: string[], writer: 'agent' | 'other' = 'other') {
  return readWrittenHeader(Buffer.from(lines.map((line) => `${line}\r\n`).join('')), {
    at,
    newId: 'new',
    writer,
  })
}

function linesOf(lines: string[], writer?: 'agent'): string[] {
  const header = read(lines, writer)
  assert.ok('bytes' in header, JSON.stringify(header))
  return header.bytes.toString().split('\r\n').slice(0, -1)
}

test('a complete header stays as it is, byte for byte', () => {
  const folded = [...whole, 'X-Odd:  kept\t ', 'Subject: two', ' lines']
  assert.deepEqual(linesOf(folded), folded)
})

test('hidden recipients, return path and our own fields are removed, with their continuations', () => {
  const own = [
    'Bcc: b@x.test,',
    ' c@x.test',
    'RETURN-PATH: <a@x.test>',
    'X-Posthorn-Metadata-A_b: =?utf-8?Q?=C3=BC?=',
  ]
  const header = read([...whole, ...own, 'x-posthorn-purpose: Transactional'])
  assert.ok('bytes' in header)
  assert.equal(header.bytes.toString(), whole.map((line) => `${line}\r\n`).join(''))
  assert.deepEqual([header.metadata, header.purpose], [{ a_b: 'ü' }, 'transactional'])
})

test('a missing Date and a missing or unusable Message-ID are added, and an agent is announced', () => {
  const added = ['Date: Sat, 21 Nov 2026 09:00:00 +0000', 'Message-ID: <new@x.test>']
  assert.deepEqual(linesOf(['From: ada@x.test']), ['From: ada@x.test', ...added])
  assert.deepEqual(linesOf(['From: ada@x.test', 'Message-ID: none']).slice(-2), added)
  assert.deepEqual(linesOf(whole, 'agent').at(-1), 'Auto-Submitted: auto-generated')
})

const faults: [line: string, fault: RegExp][] = [
  ['From: eve@y.test', /more than one from field/],
  ['Subject : a', /^$/],
  [`From${' '.repeat(80)}: eve@y.test`, /Line 4/],
  ['Sender: eve@y.test <ada@x.test>, <eve@y.test>', /Sender field/],
  ['Sender: nobody', /Sender field/],
  ['X-Posthorn-Purpose: marketing\r\nX-Posthorn-Purpose: transactional', /more than one x-posthorn-purpose/],
  ['no field', /Line 4 of the header is no header field/],
  ['From eve@y.test Sat', /Line 4/],
  ['Sender: eve@y.test', /Sender field must have one address, of the domain of From/],
  ['X-Posthorn-Purpose: spam', /transactional or marketing/],
  ['X-Posthorn-Metadata-: a', /metadata/],
  [`X-Posthorn-Metadata-a: ${'x'.repeat(501)}`, /metadata/],
  [Array.from({ length: 51 }, (_, n) => `X-Posthorn-Metadata-${n}: a`).join('\r\n'), /more than 50 metadata/],
  ['a:\r\n'.repeat(10_001), /more than 10000 fields/],
]
for (const [line, fault] of faults)
  test(`refused or not: ${JSON.stringify(line.slice(0, 30))}`, () => {
    const header = read([...whole, line])
    assert.match('fault' in header ? header.fault : '', fault)
  })

const hidden = `From: a@x.test${' '.repeat(10_000)}, b@y.test`
for (const from of [
  '',
  'From: a@x.test, b@x.test',
  'From: nobody',
  'From: <>',
  'From: a@[127.0.0.1]',
  hidden,
])
  test(`no single sender: ${from.slice(0, 30)} of ${from.length} characters`, () => {
    const header = read([from, ...whole.slice(1)].filter((line) => line !== ''))
    assert.match('fault' in header ? header.fault : '', /From field with one address/)
  })

test('the field TLS-Required makes TLS optional if it says No, once', () => {
  const rows: [lines: string[], wish: 'optional' | null][] = [
    [[], null],
    [['TLS-Required: No'], 'optional'],
    [['tls-required:  NO '], 'optional'],
    [['TLS-Required: Yes'], null],
    [['TLS-Required: No', 'TLS-Required: No'], null],
    [['TLS-Required: No, really'], null],
  ]
  for (const [lines, wish] of rows) {
    const header = read([...whole, ...lines])
    assert.ok('bytes' in header)
    assert.equal(header.tlsWish, wish, lines.join())
  }
})
