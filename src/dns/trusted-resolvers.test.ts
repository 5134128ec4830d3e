// Resolvers whose proof by DNSSEC is believed, and resolvers whose proof is not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trustedResolvers } from './trusted-resolvers.ts'

const servers: [string, boolean][] = [
  ['127.0.0.1', true],
  ['127.0.0.53', true],
  ['::1', true],
  ['127.0.0.11', false],
  ['10.0.0.53', false],
  ['9.9.9.9', false],
  ['192.0.2.7', true],
  ['2001:db8::53', true],
]

for (const [ip, isTrusted] of servers)
  test(`check 35: a resolver at ${ip} is ${isTrusted ? '' : 'not '}believed`, () => {
    assert.equal(trustedResolvers(['192.0.2.0/24', '2001:db8::53/128'])(ip), isTrusted)
  })
