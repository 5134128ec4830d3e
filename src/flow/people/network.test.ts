// Which addresses count as one network.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkOf, wideNetworkOf } from './network.ts'

const cases: [ip: string, network: string, wide: string][] = [
  ['192.0.2.7', '192.0.2.7/32', '192.0.2.0/24'],
  ['::ffff:192.0.2.7', '192.0.2.7/32', '192.0.2.0/24'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8:1:3::1', '2001:db8:1:3::/64', '2001:db8:1::/48'],
  ['::1', '::/64', '::/48'],
  ['no address', 'no address', 'no address'],
]

for (const [ip, network, wide] of cases)
  test(`${ip} is of ${network}, which is of ${wide}`, () => {
    assert.deepEqual([networkOf(ip), wideNetworkOf(ip)], [network, wide])
  })
