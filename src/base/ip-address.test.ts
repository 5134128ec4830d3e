// IP addresses: the written form, the networks they count under, and ranges.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inRanges, networkOf, wideNetworkOf, writtenAddress } from './ip-address.ts'

const cases: [ip: string, written: string, network: string, wide: string][] = [
  ['192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.0/24'],
  ['::ffff:192.0.2.7', '192.0.2.7', '192.0.2.7', '192.0.2.0/24'],
  ['2001:db8:1:2::1', '2001:db8:1:2::1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:DB8:1:2:ffff:0:0:ffff', '2001:db8:1:2:ffff::ffff', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8:1:3:0:0:0:1', '2001:db8:1:3::1', '2001:db8:1:3::/64', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['fe80::1%eth0', 'fe80::1', 'fe80:0:0:0::/64', 'fe80:0:0::/48'],
  ['::1', '::1', '0:0:0:0::/64', '0:0:0::/48'],
]

for (const [ip, written, network, wide] of cases)
  test(`${ip} is written ${written}, and belongs to ${network}, which belongs to ${wide}`, () => {
    assert.equal(writtenAddress(ip), written)
    assert.deepEqual([networkOf(written), wideNetworkOf(written)], [network, wide])
  })

test('an address matches ranges of its own family, also if IPv6 maps it or it has a zone', () => {
  const isInside = inRanges(['192.0.2.0/24', 'fe80::/10'])
  for (const ip of ['192.0.2.7', '::ffff:192.0.2.7', 'fe80::1%eth0']) assert.ok(isInside(ip), ip)
  for (const ip of ['192.0.3.7', '::ffff:192.0.3.7', '2001:db8::1', '::1']) assert.ok(!isInside(ip), ip)
})
