// Tests of proxy.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readProxyHeader } from './proxy.ts'

const lines: [string, ReturnType<typeof readProxyHeader> | { address: string; port: number } | 'unknown'][] =
  [
    ['PROXY TCP4 192.0.2.7 192.0.2.1 4711 25', { address: '192.0.2.7', port: 4711 }],
    ['PROXY TCP6 2001:db8::7 2001:db8::1 4711 25', { address: '2001:db8::7', port: 4711 }],
    ['PROXY TCP6 ::ffff:192.0.2.7 ::1 4711 25', { address: '192.0.2.7', port: 4711 }],
    ['PROXY TCP6 fe80::1%eth0 ::1 4711 25', 'malformed'],
    ['PROXY UNKNOWN', 'unknown'],
    ['PROXY UNKNOWN ffff::1 ffff::2 1 2', 'unknown'],
    ['PROXY UNKNOWNX', 'malformed'],
    ['PROXY TCP4 2001:db8::7 192.0.2.1 1 2', 'malformed'],
    ['PROXY TCP6 192.0.2.7 192.0.2.1 1 2', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.1 70000 2', 'malformed'],
    ['PROXY TCP4 192.0.2.7', 'malformed'],
    ['PROXY TCP5 192.0.2.7 192.0.2.1 1 2', 'malformed'],
    ['PROXY TCP4 192.0.2.7 192.0.2.1 1 2\nEHLO x', 'malformed'],
    [`PROXY UNKNOWN ${'x'.repeat(100)}`, 'malformed'],
  ]
for (const [line, want] of lines)
  test(`check 24: a PROXY line is read or refused: ${JSON.stringify(line)}`, () => {
    const bytes = Buffer.from(`${line}\r\nEHLO x\r\n`)
    const sizeBytes = line.length + 2
    assert.deepEqual(readProxyHeader(bytes), want === 'malformed' ? want : { peer: want, sizeBytes })
  })

const signature = '0d0a0d0a000d0a515549540a'
const ipv4 = 'c0000207c0000201126700 19'
const ipv6 = '20010db8000000000000000000000007 20010db8000000000000000000000001 1267 0019'
const mapped = '00000000000000000000ffffc0000207 00000000000000000000ffffc0000201 1267 0019'
const binaries: [name: string, hex: string, want: { address: string; port: number } | string][] = [
  ['TCP over IPv4', `2111000c ${ipv4}`, { address: '192.0.2.7', port: 4711 }],
  ['TCP over IPv4, with more behind it', `21110010 ${ipv4} 04000100`, { address: '192.0.2.7', port: 4711 }],
  ['TCP over IPv6', `21210024 ${ipv6}`, { address: '2001:db8::7', port: 4711 }],
  ['a mapped address', `21210024 ${mapped}`, { address: '192.0.2.7', port: 4711 }],
  ['a probe of us', '20000000', 'unknown'],
  ['a probe of us that names somebody', `2011000c ${ipv4}`, 'unknown'],
  ['nobody named', '21000000', 'unknown'],
  ['nobody named, with more behind it', '21000003 040000', 'unknown'],
  ['another version', `1111000c ${ipv4}`, 'malformed'],
  ['another command', `2211000c ${ipv4}`, 'malformed'],
  ['UDP', `2112000c ${ipv4}`, 'malformed'],
  ['a Unix socket', `213100d8 ${'00'.repeat(216)}`, 'malformed'],
  ['half an address', `2111000b ${ipv4}`, 'malformed'],
  ['half an IPv6 address', `21210023 ${ipv6}`, 'malformed'],
  ['too much behind it', `21111001 ${ipv4}`, 'malformed'],
  ['a probe of us with too much behind it', '2000ffff', 'malformed'],
]
for (const [name, hex, want] of binaries)
  test(`check 24: a PROXY header of version 2 is read or refused: ${name}`, () => {
    const header = Buffer.from((signature + hex).replaceAll(' ', ''), 'hex')
    const got = readProxyHeader(Buffer.concat([header, Buffer.from('EHLO x\r\n')]))
    assert.deepEqual(got, want === 'malformed' ? want : { peer: want, sizeBytes: header.length })
  })

test('bytes that are not a PROXY header are recognized from the first byte', () => {
  for (const text of ['', 'EHLO', 'PROXIES', 'QUIT\r\n', '\r\nQUIT\r\n', '\n', 'proxy TCP4'])
    assert.equal(readProxyHeader(Buffer.from(text)), 'none', text)
})

const heads = [`PROXY TCP4 192.0.2.7 192.0.2.1 4711 25\r\n`, Buffer.from(signature, 'hex').toString('latin1')]
const hostile = fc
  .tuple(fc.constantFrom('', ...heads), fc.nat(60), fc.string({ unit: 'binary', maxLength: 300 }))
  .map(([head, cut, tail]) => Buffer.from(head.slice(0, cut) + tail, 'latin1'))

test('check 24: any bytes are read safely, alike in pieces, with a bounded wait for more', () => {
  fc.assert(
    fc.property(hostile, (bytes) => {
      const whole = readProxyHeader(bytes)
      if (whole === 'part') return assert.ok(bytes.length < 16 + 4096)
      if (typeof whole === 'object') assert.ok(whole.sizeBytes <= bytes.length)
      // However it is cut, an incomplete header stays 'part' until it is complete, and is never read as anything else.
      let at = 1
      while (at < bytes.length && readProxyHeader(bytes.subarray(0, at)) === 'part') at++
      assert.deepEqual(readProxyHeader(bytes.subarray(0, at)), whole)
    }),
  )
})
