// Every setting with absurd values: it is accepted as it is, or refused in one short line that names it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SettingError } from './setting-reader.ts'
import { listSettings, readSettings } from './settings.ts'

const settings = listSettings()

test('docs/settings.md lists every setting, and no other', () => {
  const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `POSTHORN_'))
  const described = rows.flatMap((row) => row.split('|')[1]!.match(/POSTHORN_[A-Z_]+/g) ?? [])
  assert.deepEqual(described.toSorted(), settings.toSorted())
})

/** Other settings that a setting needs, so that it can be tested alone. */
const beside: Record<string, Record<string, string>> = {
  POSTHORN_ACME: { POSTHORN_MAIL_HOST: 'mx.example.com' },
  POSTHORN_ACME_DIRECTORY: { POSTHORN_MAIL_HOST: 'mx.example.com', POSTHORN_ACME: 'ops@example.com' },
  POSTHORN_SMTP_TLS_CERT: { POSTHORN_SMTP_TLS_KEY: 'key.pem' },
  POSTHORN_SMTP_TLS_KEY: { POSTHORN_SMTP_TLS_CERT: 'cert.pem' },
  POSTHORN_RELAY_TLS: { POSTHORN_RELAY_URL: 'smtp://relay.example.com' },
  ...Object.fromEntries(
    ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET', 'NAME'].map((name) => [
      `POSTHORN_OIDC_${name}`,
      {
        POSTHORN_OIDC_ISSUER: 'https://id.example.com',
        POSTHORN_OIDC_CLIENT_ID: 'posthorn',
        POSTHORN_OIDC_CLIENT_SECRET: 'swordfish',
      },
    ]),
  ),
}

/** These accept any words: names of files and folders, values from a provider, a passphrase. */
const words = new Set([
  ...['POSTHORN_DATA_DIR', 'POSTHORN_SMTP_TLS_CERT', 'POSTHORN_SMTP_TLS_KEY', 'POSTHORN_SECRET_KEY_FILE'],
  ...['POSTHORN_OIDC_CLIENT_ID', 'POSTHORN_OIDC_CLIENT_SECRET', 'POSTHORN_OIDC_NAME'],
  ...['POSTHORN_BACKUP_PASSPHRASE', 'POSTHORN_DELIVERY_FILE'],
])

const many = (item: string) => Array.from({ length: 10_000 }, () => item).join()

/** Absurd for every setting except those that accept any words. */
const values: [what: string, value: string][] = [
  ...[
    'NaN',
    '-1',
    '1e999',
    'Infinity',
    '999999999999999999999999',
    '0x10',
    '1.5',
    'null',
    'undefined',
    '[]',
  ].map((value): [string, string] => [value, value]),
  ...[
    '{"a":1}',
    '{',
    '[object Object]',
    '../..',
    '%00',
    '😀',
    ' , ',
    ':',
    '@',
    ':::',
    'TRUE',
    '-1d',
    '1d1d',
  ].map((value): [string, string] => [value, value]),
]
const never: [what: string, value: string][] = [
  ['a megabyte', 'a'.repeat(1 << 20)],
  ['a megabyte of digits', '1'.repeat(1 << 20)],
  ['a megabyte of dots', 'a.'.repeat(1 << 19)],
  ['a megabyte in a path', `/${'a/'.repeat(1 << 19)}`],
  ['a megabyte in a URL', `https://a.example/${'a'.repeat(1 << 20)}`],
  ['a bell', 'mx\u0007.example.com'],
  ['a null character', 'a\u0000b'],
  ['two lines', 'a\nPOSTHORN_B=c'],
  ['a line separator', 'a\u2028b'],
  ['an escape sequence', 'a\u001b[2Jb'],
  ...[
    ...['1', 'a', '10.0.0.0/8', '1m', 'api', 'a.example', '127.0.0.1:53', '192.0.2.1', 'tell:a.example'],
    ...['{"inboxes":1}', 'x@a.example', 'https://a.example', '/a'],
  ].map((item): [string, string] => [`10,000 times ${item}`, many(item)]),
]

function outcome(name: string, value: string): string {
  try {
    readSettings({ ...beside[name], [name]: value })
    return 'taken'
  } catch (error) {
    assert.ok(error instanceof SettingError, `${(error as Error).stack}`)
    const { message } = error
    assert.match(message, /^[^\p{Cc}\p{Zl}\p{Zp}]{1,400}$/u)
    assert.ok(message.includes(name), message)
    assert.match(message, /: write /)
    return 'refused'
  }
}

for (const name of settings)
  test(`F10: ${name} with absurd values is refused in one short line`, () => {
    for (const [what, value] of values)
      assert.equal(outcome(name, value), words.has(name) ? 'taken' : 'refused', what)
    for (const [what, value] of never) assert.equal(outcome(name, value), 'refused', what)
    for (const nothing of ['', '  ', '\t\n']) assert.ok(readSettings({ [name]: nothing }))
  })

for (const [name, ...wrong] of [
  ['POSTHORN_MAIL_HOST', 'mx', 'mx.', '192.0.2.1', 'mx_1.example.com', 'https://mx.example.com'],
  [
    'POSTHORN_HTTP',
    '8025',
    '127.0.0.1',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    '127.0.0.1:80,127.0.0.1:81',
    '[::1:80',
    'a b:80',
  ],
  [
    'POSTHORN_OUTBOUND_IP',
    '0.0.0.0',
    ':::',
    '224.0.0.1',
    '255.255.255.255',
    '::ffff:192.0.2.1',
    'fe80::1%eth0',
  ],
  [
    'POSTHORN_OUTBOUND_IP',
    '192.0.2.1,192.0.2.2',
    '192.0.2.1,',
    '192.0.2.1:25',
    'mx.example.com',
    '192.0.2.0/24',
  ],
  ['POSTHORN_RETRY_LIFETIME', '0s', '366d', '999999999d', '1w'],
  ['POSTHORN_RETRY_SCHEDULE', '1m,0s', '8d', '999999999d'],
  ['POSTHORN_RETENTION', '29d', '999999999d'],
  ['POSTHORN_DRAIN_DELAY', '61s', '2m', '5', '-1s'],
  ['POSTHORN_MX_PORT', '0', '65536'],
  ['POSTHORN_WORKERS', '0', '17', '-1', '1.5', 'two', 'AUTO'],
  ['POSTHORN_CLAMD', '127.0.0.1:0', `/${'a'.repeat(107)}`],
  [
    'POSTHORN_BLOB_URL',
    ...[
      'file:',
      'file://host/folder',
      '/a/folder',
      's3://bucket',
      's3://b?region=x',
      's3://bucket?region=EU',
    ],
    ...['s3://bucket/a//b?region=x', 's3://bucket/../b%20c?region=x', 's3://bucket?region=x&region=y'],
    ...['s3://bucket?region=x&typo=y', 's3://u@bucket?region=x', 's3://bucket?region=x&pathStyle=yes'],
    ...[
      's3://bucket?endpoint=ftp://a',
      's3://bucket?endpoint=https://a/b',
      's3://bucket?endpoint=https://u@a',
    ],
  ],
  ['POSTHORN_RELAY_URL', 'smtp://relay.example.com:0'],
  ['POSTHORN_RSPAMD', 'http://127.0.0.1:0'],
  ['POSTHORN_PUBLIC_URL', 'https://a.example/?x', 'https://a.example/#x', 'https://u@a.example'],
] as const)
  test(`${name} refuses ${wrong.map((value) => value.slice(0, 30)).join(' ')}`, () => {
    for (const value of wrong) assert.equal(outcome(name, value), 'refused', value)
  })

for (const [text, ipv4, ipv6] of [
  ['192.0.2.1', '192.0.2.1', null],
  ['2001:db8::1', null, '2001:db8::1'],
  ['192.0.2.1, 2001:db8::1', '192.0.2.1', '2001:db8::1'],
  ['2001:db8::1,127.0.0.2', '127.0.0.2', '2001:db8::1'],
] as const)
  test(`mail leaves by ${text}`, () => {
    assert.deepEqual(readSettings({ POSTHORN_OUTBOUND_IP: text }).outbound, { ipv4, ipv6 })
  })

test('a setting of JSON may have several lines', () => {
  assert.equal(readSettings({ POSTHORN_DEFAULT_LIMITS: '{\n\t"inboxes": 7\n}' }).defaultLimits.inboxes, 7)
})
