// Which URLs are accepted, and that a non-public address is refused in every spelling.
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import fc from 'fast-check'
import { AddressGuard } from './address-guard.ts'

/** In these tests an address is public unless it begins like this. */
const isPublic = (ip: string) => !/^(0\.|10\.|127\.|169\.254|192\.168|::|fc|fd|fe80|2[2-5]\d\.)/.test(ip)
const outside = { isPublic, allowPrivateNetworks: false, isDevelopment: false }
const guard = new AddressGuard(outside)
const development = new AddressGuard({ ...outside, isDevelopment: true })
const open = new AddressGuard({ ...outside, allowPrivateNetworks: true })

const taken = [
  ...[
    'https://example.com',
    'https://example.com/a?b=c',
    'https://EXAMPLE.com:8443/',
    'https://8.8.8.8/hook',
  ],
  ...['https://[2606:4700::1111]/hook', 'https://bücher.example/', 'HTTPS://example.com/'],
]
const refused = [
  ...[
    'http://example.com',
    'ftp://example.com',
    'file:///etc/passwd',
    'gopher://example.com/',
    'example.com',
    '',
  ],
  ...[
    'https://1.1.1.1:0/',
    'https://example.com:0',
    'https://user@example.com',
    'https://user:pass@example.com',
    'https://example.com/#here',
    'https://exa mple.com',
  ],
  ...[
    'https://localhost',
    'https://LOCALHOST',
    'https://localhost.',
    'https://a.localhost',
    'https://printer.local',
  ],
  ...[
    'https://db.internal',
    'https://intranet',
    'https://example.com.',
    'https://127.0.0.1',
    'https://127.1',
  ],
  ...[
    'https://0x7f.1',
    'https://0x7f000001',
    'https://2130706433',
    'https://017700000001',
    'https://0177.0.0.1',
  ],
  ...[
    'https://127.0.0.1.',
    'https://①②⑦.0.0.1',
    'https://0',
    'https://0.0.0.0',
    'https://10.0.0.1',
    'https://1⁠27.0.0.1',
  ],
  ...[
    'https://169.254.169.254/latest',
    'https://192.168.1.1',
    'https://224.0.0.1',
    'https://255.255.255.255',
  ],
  ...[
    'https://[::1]',
    'https://[::]',
    'https://[::ffff:127.0.0.1]',
    'https://[::ffff:7f00:1]',
    'https://[fe80::1]',
  ],
  ...['https://[fd00::1]', 'https://[0:0:0:0:0:0:0:1]', 'https://0x08080808', 'https://8.8.2056'],
  ...[
    'https://example.com:25',
    'https://example.com:5432',
    'https://8.8.8.8:6379',
    'https://example.com\\@localhost/',
  ],
  ...[
    'https://example.com\n/',
    ' https://example.com',
    `https://example.com/${'a'.repeat(2048)}`,
    'https://',
  ],
]

test('check 80: URLs of endpoints are accepted or refused by their address', () => {
  for (const url of taken) assert.equal(guard.refusalOf(url), null, url)
  for (const url of refused) assert.equal(typeof guard.refusalOf(url), 'string', url)
})

test('check 80: this machine’s own addresses are refused, public ones included', () => {
  const own = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
  const trusting = new AddressGuard({ ...outside, isPublic: () => true })
  for (const address of own) assert.equal(trusting.allows(address), false, address)
})

test('webhooks: development allows loopback without TLS, and private networks allow any address', () => {
  for (const url of [
    'http://127.0.0.1:3000/',
    'http://localhost:3000',
    'http://[::1]:3000',
    'https://localhost',
  ])
    assert.deepEqual([development.refusalOf(url), open.refusalOf(url)], [null, null], url)
  for (const url of ['http://example.com', 'https://10.0.0.1']) {
    assert.equal(typeof development.refusalOf(url), 'string', url)
    assert.equal(open.refusalOf(url), null, url)
  }
  assert.deepEqual([development.allows('127.0.0.1'), development.allows('10.0.0.1')], [true, false])
})

test('check 80: no spelling of a loopback address passes', () => {
  const part = fc.tuple(fc.nat(255), fc.constantFrom(10, 8, 16)).map(([value, base]) => {
    if (base === 10) return String(value)
    return base === 8 ? `0${value.toString(8)}` : `0x${value.toString(16)}`
  })
  fc.assert(
    fc.property(fc.array(part, { maxLength: 3 }), fc.constantFrom('127', '0177', '0x7f'), (rest, first) => {
      const host = [first, ...rest].join('.')
      // A single number is a whole address.
      if (rest.length > 0) assert.equal(typeof guard.refusalOf(`https://${host}/`), 'string', host)
    }),
  )
})

test('webhooks: any text is judged without an exception', () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.webUrl()), (text) => void guard.refusalOf(text)))
})
