// Address classes that must never be connected to, as a table.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPublicUnicast } from './public-address.ts'

const refused = [
  ['loopback', '127.0.0.1', '127.255.255.255', '::1'],
  ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  ['link-local', '169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  ['shared', '100.64.0.1', '100.127.255.255'],
  ['unspecified and this network', '0.0.0.0', '0.1.2.3', '::'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1'],
  ['reserved', '240.0.0.1', '255.255.255.255', '192.0.0.1', '192.88.99.1'],
  ['documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  ['benchmarking', '198.18.0.1', '198.19.255.255', '2001:2::1'],
  ['IPv4 in IPv6', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '::127.0.0.1', '::8.8.8.8'],
  ['6to4, Teredo, NAT64', '2002:7f00:1::', '2002:808:808::1', '2001::1', '64:ff9b::7f00:1', '64:ff9b:1::1'],
  ['discard, site-local, unassigned', '100::1', 'fec0::1', '4000::1', '8000::1', '5f00::1'],
  ['other forms of literals', '0x7f.0.0.1', '0177.0.0.1', '127.1', '2130706433', '0x7f000001', '127.0.0.1.'],
  ['no literals', '', 'localhost', 'example.com', '[::1]', '8.8.8.8 ', '8.8.8.8:25', '08.8.8.8'],
] as const

const allowed = [
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450::1',
]

for (const [what, ...addresses] of refused) {
  test(`check 80: ${what} addresses are not public`, () => {
    assert.deepEqual(addresses.filter(isPublicUnicast), [])
  })
}

test('check 80: public addresses are recognized', () => {
  assert.deepEqual(
    allowed.filter((ip) => !isPublicUnicast(ip)),
    [],
  )
})
