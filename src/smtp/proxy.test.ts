// Tests of proxy.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseProxyLine } from './proxy.ts'

const cases: [string, ReturnType<typeof parseProxyLine>][] = [
  ['PROXY TCP4 192.0.2.7 192.0.2.1 4711 25', { address: '192.0.2.7', port: 4711 }],
  ['PROXY TCP6 2001:db8::7 2001:db8::1 4711 25', { address: '2001:db8::7', port: 4711 }],
  ['PROXY TCP6 ::ffff:192.0.2.7 ::1 4711 25', { address: '192.0.2.7', port: 4711 }],
  ['PROXY TCP6 fe80::1%eth0 ::1 4711 25', null],
  ['PROXY UNKNOWN', 'unknown'],
  ['PROXY UNKNOWN ffff::1 ffff::2 1 2', 'unknown'],
  ['PROXY UNKNOWNX', null],
  ['PROXY TCP4 2001:db8::7 192.0.2.1 1 2', null],
  ['PROXY TCP6 192.0.2.7 192.0.2.1 1 2', null],
  ['PROXY TCP4 192.0.2.7 192.0.2.1 70000 2', null],
  ['PROXY TCP4 192.0.2.7', null],
  ['PROXY TCP5 192.0.2.7 192.0.2.1 1 2', null],
  [`PROXY UNKNOWN ${'x'.repeat(100)}`, null],
]
for (const [line, want] of cases)
  test(`check 24: ${line}`, () => assert.deepEqual(parseProxyLine(line), want))
