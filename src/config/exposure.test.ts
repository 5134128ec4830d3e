// Which settings the start and the doctor report as dangerous.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findExposures } from './exposure.ts'

const loopback = { host: '127.0.0.1', port: 8025 }
const open = { host: '0.0.0.0', port: 8025 }
const safe = { isDevelopment: false, http: loopback, https: null, allowPrivateNetworks: false }

for (const [what, settings, named] of [
  ['production on every address', { ...safe, http: open, https: open }, []],
  ['development on this machine alone', { ...safe, isDevelopment: true, allowPrivateNetworks: true }, []],
  ['development on every address', { ...safe, isDevelopment: true, http: open }, ['POSTHORN_MAIL_HOST']],
  [
    'development with HTTPS for others',
    { ...safe, isDevelopment: true, https: open },
    ['POSTHORN_MAIL_HOST'],
  ],
  [
    'private networks in production',
    { ...safe, allowPrivateNetworks: true },
    ['POSTHORN_ALLOW_PRIVATE_NETWORKS'],
  ],
] as const)
  test(`hostile 32: for ${what} the service names ${named.length === 0 ? 'no setting' : named} as dangerous`, () => {
    const found = findExposures(settings).map(({ detail }) => /POSTHORN_\w+/.exec(detail)?.[0])
    assert.deepEqual(found, [...named])
  })
