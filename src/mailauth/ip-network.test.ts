// Compares our reader of addresses with another one, for all written forms.
import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { clientIp, parseIp, writeIp } from './ip-network.ts'

const written = [
  ...[
    '0.0.0.0',
    '127.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '1::',
    '1::8',
    '2001:DB8::ff',
    '1:2:3:4:5:6:7:8',
  ],
  ...[
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
    '::ffff:192.0.2.1',
    '::192.0.2.1',
    '64:ff9b::192.0.2.33',
    '1:2:3:4:5:6:1.2.3.4',
  ],
]
const nothing = [
  '',
  '1',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '1.2.3.256',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  'fe80::1%eth0',
]

/** Without dots in IPv6, because ipaddr.js takes any IPv6 address with dots for a mapped one. */
function reference(text: string): ipaddr.IPv4 | ipaddr.IPv6 {
  return ipaddr.parse(isIP(text) === 6 ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : text)
}

test(`${written.length} written addresses are read, and ${nothing.length} other texts are refused`, () => {
  for (const text of written) assert.deepEqual(parseIp(text), reference(text).toByteArray(), text)
  for (const text of nothing) assert.equal(parseIp(text), null, text)
})

test('any address reads as in ipaddr.js, and reads the same once written', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), (text) => {
      const ip = parseIp(text)
      assert.deepEqual(ip, isIP(text) === 0 ? null : reference(text).toByteArray())
      if (ip === null) return
      assert.deepEqual(parseIp(writeIp(ip)), ip)
      assert.deepEqual(clientIp(text), ipaddr.process(reference(text).toString()).toByteArray())
    }),
    { numRuns: 2000 },
  )
})

test('a client’s mapped IPv4 address counts as IPv4, and its zone is ignored', () => {
  assert.deepEqual(clientIp('::ffff:192.0.2.1'), [192, 0, 2, 1])
  assert.deepEqual(clientIp('fe80::1%eth0'), parseIp('fe80::1'))
  assert.throws(() => clientIp('mail.example'))
})
