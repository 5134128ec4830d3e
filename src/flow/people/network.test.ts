// Which addresses count as one network.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkOf } from './network.ts'

const cases: [ip: string, network: string][] = [
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
  ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['::1', '::/64'],
  ['no address', 'no address'],
]

for (const [ip, network] of cases)
  test(`${ip} is of ${network}`, () => {
    assert.equal(networkOf(ip), network)
  })
