// Settings that depend on each other: certificates by ACME, HTTPS, and the public URL of the API.
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { SettingError } from './setting-reader.ts'
import { readSettings } from './settings.ts'

const oidc = {
  POSTHORN_OIDC_ISSUER: 'https://id.example.com',
  POSTHORN_OIDC_CLIENT_ID: 'posthorn',
  POSTHORN_OIDC_CLIENT_SECRET: 'swordfish',
}
const live = { POSTHORN_MAIL_HOST: 'mx.example.com', POSTHORN_HTTPS: '0.0.0.0:443' }

for (const [what, environment, publicUrl] of [
  ['HTTPS on its own port', live, 'https://mx.example.com'],
  ['HTTPS on another', { ...live, POSTHORN_HTTPS: '[::]:8443' }, 'https://mx.example.com:8443'],
  [
    'a name of its own',
    { ...live, POSTHORN_PUBLIC_URL: 'https://api.example.com/' },
    'https://api.example.com',
  ],
  ['a free port', { ...live, POSTHORN_HTTPS: '127.0.0.1:0' }, null],
  ['HTTPS in development', { POSTHORN_HTTPS: '127.0.0.1:8443' }, null],
  ['no HTTPS', { POSTHORN_MAIL_HOST: 'mx.example.com' }, null],
] as const)
  test(`with ${what} the public URL is ${publicUrl ?? 'unset'}`, () => {
    assert.equal(readSettings(environment).publicUrl, publicUrl)
  })

test('auto is a worker per core, and at most 16; unset is one process', () => {
  const workers = (text?: string) => readSettings(text ? { POSTHORN_WORKERS: text } : {}).workers
  assert.deepEqual([workers('auto'), workers('16'), workers()], [Math.min(16, availableParallelism()), 16, 1])
})

test('the key variable of the docs’ examples does not stop a start', () => {
  assert.equal(readSettings({ POSTHORN_KEY: 'ph_x' }).isDevelopment, true)
})

test('ACME uses Let’s Encrypt unless another directory is set', () => {
  const acme = (directory?: string) =>
    readSettings({
      ...live,
      POSTHORN_ACME: ' ops@Example.com ',
      ...(directory && { POSTHORN_ACME_DIRECTORY: directory }),
    }).acme
  assert.deepEqual(acme(), {
    directory: 'https://acme-v02.api.letsencrypt.org/directory',
    email: 'ops@example.com',
  })
  assert.equal(acme('https://acme.test/dir')!.directory, 'https://acme.test/dir')
  assert.equal(readSettings(live).acme, null)
})

test('an identity provider needs issuer, id and secret, and is named by its host', () => {
  const { oidc: read, isSignUpOpen } = readSettings({ ...oidc, POSTHORN_SIGN_UP: 'invited' })
  assert.deepEqual(read, {
    issuer: 'https://id.example.com',
    clientId: 'posthorn',
    clientSecret: 'swordfish',
    name: 'id.example.com',
  })
  assert.equal(isSignUpOpen, false)
  const plain = readSettings({})
  assert.deepEqual([plain.oidc, plain.isSignUpOpen], [null, true])
})

for (const [what, environment, words] of [
  [
    'no address',
    { ...live, POSTHORN_ACME: 'on' },
    /POSTHORN_ACME="on" is not valid: write your email address/,
  ],
  [
    'an address with a question',
    { ...live, POSTHORN_ACME: '"a?b"@example.com' },
    /POSTHORN_ACME is not valid/,
  ],
  ['development', { POSTHORN_ACME: 'ops@example.com' }, /needs POSTHORN_MAIL_HOST/],
  [
    'files as well',
    { ...live, POSTHORN_ACME: 'ops@example.com', POSTHORN_SMTP_TLS_CERT: 'a', POSTHORN_SMTP_TLS_KEY: 'b' },
    /both provide the certificate/,
  ],
  ['a directory by http', { POSTHORN_ACME_DIRECTORY: 'http://acme.test/dir' }, /POSTHORN_ACME_DIRECTORY/],
  ['a directory alone', { POSTHORN_ACME_DIRECTORY: 'https://acme.test/dir' }, /needs POSTHORN_ACME: /],
  [
    'two listeners at one address',
    { POSTHORN_HTTP: '[::1]:8080', POSTHORN_HTTPS: '[::1]:8080' },
    /POSTHORN_HTTP and POSTHORN_HTTPS are both \[::1\]:8080/,
  ],
  ['no kind of sign-up', { POSTHORN_SIGN_UP: 'closed' }, /POSTHORN_SIGN_UP="closed".*write open or invited/],
  [
    'a provider without its secret',
    { ...oidc, POSTHORN_OIDC_CLIENT_SECRET: '' },
    /go together: set all three/,
  ],
  ['the name of no provider', { POSTHORN_OIDC_NAME: 'Example ID' }, /go together/],
  [
    'a provider that is asked in the clear',
    { ...oidc, POSTHORN_OIDC_ISSUER: 'http://id.example.com' },
    /POSTHORN_OIDC_ISSUER is not valid: write https:/,
  ],
  [
    'a provider with a question',
    { ...oidc, POSTHORN_OIDC_ISSUER: 'https://id.example.com/?a=b' },
    /OIDC_ISSUER/,
  ],
  [
    'no listener',
    { POSTHORN_HTTPS: '443' },
    /POSTHORN_HTTPS="443" is not valid: write one address, such as 0\.0\.0\.0:443/,
  ],
] as const)
  test(`settings are refused: ${what}`, () => {
    assert.throws(
      () => readSettings(environment),
      (error) => error instanceof SettingError && words.test(error.message),
    )
  })

for (const url of [
  'postgres://posthorn:swordfish@h1.test:5450,h2.test:5450/posthorn?target_session_attrs=read-write',
  'postgres://h1.test,[2001:db8::1]:5450,10.0.0.1/posthorn',
  'postgresql://h1.test,h2.test/posthorn?target_session_attrs=primary&sslmode=verify-full',
])
  test(`a database URL may name the hosts of a cluster: ${url.replace(/.*@/, '')}`, () => {
    assert.equal(readSettings({ POSTHORN_DATABASE_URL: url }).databaseUrl, url)
  })

for (const [url, reason] of [
  ['postgres://posthorn:swordfish@localhost/posthorn?host=h1.test,h2.test', /write them before the path/],
  ['postgres://h1.test,/posthorn', /has an empty host/],
  ['postgres://h1.test,h2.test/posthorn?port=5433', /remove host and port/],
  ['postgres://posthorn:swordfish@h1.test/posthorn?port=5432,5433', /write them before the path/],
  ['postgres://posthorn:swordfish@h1.test,,h2.test/posthorn', /is not valid/],
  ['postgres://posthorn:swordfish@h1.test,h2.test/posthorn?target_session_attrs=any', /only the primary/],
  ['postgres://posthorn:sword,fi/sh@h1.test/posthorn', /is not valid/],
] as const)
  test(`a database URL is refused with a reason: ${url.replace(/.*@/, '')}`, () => {
    assert.throws(
      () => readSettings({ POSTHORN_DATABASE_URL: url }),
      (error) =>
        error instanceof SettingError &&
        reason.test(error.message) &&
        !/swordfish|fi\/sh|h1\.test/.test(error.message),
    )
  })

test('a comma in the database’s password does not count as a second host', () => {
  const url = 'postgres://posthorn:sword,fish@h1.test/posthorn'
  assert.equal(readSettings({ POSTHORN_DATABASE_URL: url }).databaseUrl, url)
})
