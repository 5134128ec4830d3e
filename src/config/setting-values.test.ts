// Settings that are more than a word: the smarthost's URL and TLS, the address of a listener, block lists, periods.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Blocklist } from '../mailauth/blocklists.ts'
import { SettingError } from './setting-reader.ts'
import {
  blocklists,
  cidrs,
  type Retention,
  reachable,
  relayUrl,
  retention,
  rspamdUrl,
  sentContentMs,
} from './setting-values.ts'
import { readSettings } from './settings.ts'

function judged(url: string, tls?: string): string {
  const { relay } = readSettings({
    POSTHORN_RELAY_URL: url,
    ...(tls && { POSTHORN_RELAY_TLS: tls }),
  })
  return `${relay!.tls} ${relay!.tlsVerify}`
}

for (const [url, byItself, verified, unverified] of [
  ['smtp://relay.test', 'opportunistic none', 'required host', 'required none'],
  ['smtp://u:p@relay.test:587', 'required host', 'required host', 'required none'],
  ['smtp://u:p@192.0.2.1', 'required host', 'required host', 'required none'],
  ['smtp://u:p@[::ffff:127.0.0.1]', 'required host', 'required host', 'required none'],
  ['smtp://u:p@127.0.0.1', 'opportunistic none', 'required host', 'required none'],
  ['smtp://u:p@[::1]', 'opportunistic none', 'required host', 'required none'],
  ['smtp://u:p@localhost', 'opportunistic none', 'required host', 'required none'],
  ['smtps://relay.test', 'implicit host', 'implicit host', 'implicit none'],
  ['smtps://u:p@127.0.0.1', 'implicit host', 'implicit host', 'implicit none'],
] as const)
  test(`hostile 7: the smarthost ${url} gets the TLS that its URL and setting demand`, () => {
    assert.equal(judged(url), byItself)
    assert.equal(judged(url, 'verified'), verified)
    assert.equal(judged(url, 'unverified'), unverified)
  })

test('a smarthost’s URL yields host, port and login', () => {
  const { host, port, auth } = relayUrl('smtp://ada%40x:p%2Fw%25@[2001:db8::1]:2525/')!
  assert.deepEqual([host, port, auth], ['2001:db8::1', 2525, { user: 'ada@x', password: 'p/w%' }])
  assert.deepEqual([relayUrl('smtps://relay.test')!.port, relayUrl('smtp://relay.test')!.port], [465, 25])
})

for (const url of [
  ...['relay.test', 'http://relay.test', 'smtp://', 'smtp://user:100%25%@relay.test', 'smtp://:p@relay.test'],
  ...['smtp://user:p@ss/w0rd@relay.test', 'smtp://u:p?x@relay.test', 'smtp://u:p#x@relay.test'],
])
  test(`a smarthost URL is refused: ${url}`, () => assert.equal(relayUrl(url), null))

for (const [host, own] of [
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
  ['192.0.2.1', '192.0.2.1'],
] as const)
  test(`a listener on ${host} is reached at ${own}`, () =>
    assert.deepEqual(reachable({ host, port: 1 }), { host: own, port: 1 }))

for (const [text, want] of [
  ['10.0.0.0/8, 192.0.2.1', ['10.0.0.0/8', '192.0.2.1/32']],
  ['2001:db8::/32', ['2001:db8::/32']],
  ['0.0.0.0/0', null],
  ['10.0.0.0/8,::/0', null],
  ['10.0.0.0/00', null],
] as const)
  test(`trusted addresses ${text} are ${want ?? 'refused'}`, () => assert.deepEqual(cidrs(text), want))

const day = 86_400_000
const forGood = {
  submissions: null,
  messages: null,
  audit: null,
  'sent-content': null,
  'operator-mail': 30 * day,
}
const periods: [string, Partial<Retention> | null][] = [
  ['90d', { submissions: 90 * day, messages: 90 * day }],
  ['messages=7d', { messages: 7 * day }],
  ['sent-content=30d', { 'sent-content': 30 * day }],
  ['sent-content=24h', { 'sent-content': day }],
  ['submissions=90d, messages=365d', { submissions: 90 * day, messages: 365 * day }],
  [
    '60d,messages=8d,audit=400d,operator-mail=24h',
    { submissions: 60 * day, messages: 8 * day, audit: 400 * day, 'operator-mail': day },
  ],
  ...[
    '29d',
    'messages=6d',
    'sent-content=23h',
    'submissions=29d',
    '',
    '90',
    '90d,30d',
    'events=30d',
    'messages=8d,messages=9d',
    'toString=90d',
  ].map((text): [string, null] => [text, null]),
]
for (const [text, want] of periods)
  test(`POSTHORN_RETENTION=${text} is read or refused as documented`, () =>
    assert.deepEqual(retention(text), want && { ...forGood, ...want }))

for (const [text, days] of [
  ['messages=7d', 3],
  ['sent-content=30d', 30],
  ['sent-content=1d', 1],
  ['sent-content=60d,submissions=30d', 30],
] as const)
  test(`with POSTHORN_RETENTION=${text} content of sends without an inbox is kept ${days} days`, () =>
    assert.equal(sentContentMs({ retention: retention(text)!, retryLifetimeMs: 3 * day }), days * day))

const lists: [string, Blocklist[] | null][] = [
  [
    'Zen.example.org, tell:list.example.net',
    [
      { zone: 'zen.example.org', action: 'refuse' },
      { zone: 'list.example.net', action: 'tell' },
    ],
  ],
  ['tell:', null],
  ['refuse:x.test', null],
  ['a b.test', null],
  ['x.test,x.test', null],
  ['x.test,tell:x.test', null],
  [`${'a.'.repeat(100)}test`, null],
  [Array.from({ length: 9 }, (_, i) => `l${i}.test`).join(), null],
]
for (const [text, want] of lists)
  test(`POSTHORN_DNSBL=${text.slice(0, 60)} is read or refused as documented`, () => {
    assert.deepEqual(blocklists(text), want)
    const read = () => readSettings({ POSTHORN_DNSBL: text }).blocklists
    // Security: the list's zone may have a subscriber's key.
    if (want === null) assert.throws(read, /^Error: POSTHORN_DNSBL is not valid: write zen\.example\.org/)
    else assert.deepEqual(read(), want)
  })

for (const [url, origin, password] of [
  ['http://127.0.0.1:11333', 'http://127.0.0.1:11333', null],
  ['http://rspamd.test:11333/', 'http://rspamd.test:11333', null],
  ['https://[2001:db8::1]', 'https://[2001:db8::1]', null],
  ['http://:p%2Fw%25@localhost:11334', 'http://localhost:11334', 'p/w%'],
] as const)
  test(`${url} is read as an Rspamd URL`, () => assert.deepEqual(rspamdUrl(url), { origin, password }))

for (const url of [
  ...[
    '127.0.0.1:11333',
    'ftp://rspamd.test',
    'http://',
    'http://rspamd.test/checkv2',
    'http://rspamd.test/?a',
  ],
  ...[
    'http://user:p@rspamd.test',
    'http://:p/w@rspamd.test',
    'http://:p#w@rspamd.test',
    'http://:100%25%@a.test',
  ],
])
  test(`an Rspamd URL is refused: ${url}`, () => {
    assert.equal(rspamdUrl(url), null)
    assert.throws(
      () => readSettings({ POSTHORN_RSPAMD: url }),
      (error) => error instanceof SettingError && !error.message.includes(`"${url}"`),
    )
  })
