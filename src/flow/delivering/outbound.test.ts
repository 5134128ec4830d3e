// A machine without IPv6 has no way to IPv6 addresses, and so asks them last.
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { test } from 'node:test'
import { canReach } from './outbound.ts'

const chosen = { ipv4: null, ipv6: '2001:db8::1' }
const any = { ipv4: null, ipv6: null }

for (const [address, outbound, wanted] of [
  [null, any, false],
  ['fe80::1', any, false],
  ['2001:db8::2', any, true],
  [null, chosen, true],
] as const)
  test(`check 34: with ${address ?? 'no IPv6 address'}${outbound === chosen ? ' and a chosen one' : ''}, IPv6 is ${wanted ? '' : 'not '}reached`, (t) => {
    const found = address
      ? { eth0: [{ address, internal: false }] }
      : { lo: [{ address: '::1', internal: true }] }
    t.mock.method(os, 'networkInterfaces', () => found)
    syncBuiltinESMExports()
    assert.deepEqual(
      ['2001:db8::25', '::1', '192.0.2.1'].map((target) => canReach(outbound, target)),
      [wanted, true, true],
    )
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
