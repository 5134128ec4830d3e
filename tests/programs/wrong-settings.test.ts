// Wrong settings, files, folders, ports and addresses: the program exits with 1 and one line, which names the setting.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, describe, test } from 'node:test'
import { listSettings } from '../../src/config/settings.ts'
import { makeSelfSigned } from '../../src/smtp/server/certificate.ts'
import { makePlace, urlOf } from '../support/node.ts'
import { inherited } from '../support/service.ts'

const program = process.env['POSTHORN_TEST_PROGRAM'] ?? resolve(import.meta.dirname, '../../bin/posthorn')
const place = await makePlace({ after })
const isRoot = process.getuid?.() === 0
/** The account `nobody`, which owns no files. */
const nobody = 65_534
const refusedMs = 60_000

/** Another program listens here. */
const foreign = createServer((socket) => socket.end('220 another ESMTP\r\n')).listen(0, '127.0.0.1')
await once(foreign, 'listening')
after(() => foreign.close())
const taken = `127.0.0.1:${(foreign.address() as AddressInfo).port}`
/** RFC 5737: no machine has this address. */
const lacked = '192.0.2.77'

const [pair, otherPair] = [await makeSelfSigned('mx.example.com'), await makeSelfSigned('mx.example.com')]
const encryptedKey = createPrivateKey(pair.key).export({
  format: 'pem',
  type: 'pkcs8',
  cipher: 'aes-128-cbc',
  passphrase: 'x',
})

interface Case {
  /** The setting that the line must name. */
  setting: string
  what: string
  env?: Record<string, string>
  /** Creates the files that the settings name, in the program's folder. */
  prepare?: (folder: string) => void
  /** Runs as another user with a database of its own, because root can read and write everything. */
  as?: 'nobody'
  words: RegExp
}

const files = { POSTHORN_SMTP_TLS_CERT: 'cert.pem', POSTHORN_SMTP_TLS_KEY: 'key.pem' }

/** Two PEM files, changed by `change` for this case. */
function pems(change: Partial<Record<'cert.pem' | 'key.pem', string | Buffer>>) {
  return (folder: string) => {
    const contents = { 'cert.pem': pair.cert, 'key.pem': pair.key, ...change }
    for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), content)
  }
}

function locked(name: string) {
  return (folder: string) => {
    mkdirSync(join(folder, name), { mode: 0o000 })
  }
}

const listened = ['HTTP', 'HTTPS', 'OPERATOR', 'SMTP', 'SUBMISSION', 'SUBMISSIONS'].map(
  (name) => `POSTHORN_${name}`,
)
const listeners: Case[] = listened.flatMap((setting) => [
  {
    setting,
    what: 'is taken by another program',
    env: { [setting]: taken },
    words:
      /127\.0\.0\.1:\d+ is in use by another program: stop that program, or set POSTHORN_\w+ to another port$/,
  },
  {
    setting,
    what: 'is no address of this machine',
    env: { [setting]: `${lacked}:0` },
    words: /cannot listen on 192\.0\.2\.77:0 \(EADDRNOTAVAIL\): set/,
  },
])

const certificates: Case[] = [
  {
    setting: 'POSTHORN_SMTP_TLS_CERT',
    what: 'names no file',
    env: files,
    words: /cert\.pem cannot be used \(ENOENT\): write the name of a PEM file/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_CERT',
    what: 'names a folder',
    env: files,
    prepare: (folder) => mkdirSync(join(folder, 'cert.pem')),
    words: /cert\.pem cannot be used \(it is not a PEM file\)/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_CERT',
    what: 'names a device without an end',
    env: { ...files, POSTHORN_SMTP_TLS_CERT: '/dev/zero' },
    words: /\/dev\/zero cannot be used/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_CERT',
    what: 'holds no certificate',
    env: files,
    prepare: pems({ 'cert.pem': 'hello\n' }),
    words: /cert\.pem cannot be used \(/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_CERT',
    what: 'is unreadable',
    env: files,
    prepare: (folder) => {
      pems({})(folder)
      chmodSync(join(folder, 'cert.pem'), 0o000)
    },
    as: 'nobody',
    words: /cert\.pem cannot be used \(EACCES\)/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_KEY',
    what: 'names no file',
    env: files,
    prepare: (folder) => writeFileSync(join(folder, 'cert.pem'), pair.cert),
    words: /key\.pem cannot be used \(ENOENT\)/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_KEY',
    what: 'holds a key under a passphrase',
    env: files,
    prepare: pems({ 'key.pem': encryptedKey }),
    words: /key\.pem cannot be used \(.*without a passphrase$/,
  },
  {
    setting: 'POSTHORN_SMTP_TLS_KEY',
    what: 'holds the key of another certificate',
    env: files,
    prepare: pems({ 'key.pem': otherPair.key }),
    words: /key\.pem is not the key of the certificate in POSTHORN_SMTP_TLS_CERT: write/,
  },
]

const folders: Case[] = [
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'is a file',
    env: { POSTHORN_DATA_DIR: 'data' },
    prepare: (folder) => writeFileSync(join(folder, 'data'), ''),
    words: /data cannot be created \(EEXIST\): let this user create it, or set/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'is below a file',
    env: { POSTHORN_DATA_DIR: 'file/data' },
    prepare: (folder) => writeFileSync(join(folder, 'file'), ''),
    words: /cannot be created \(ENOTDIR\)/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'is where nobody can make one',
    env: { POSTHORN_DATA_DIR: '/proc/nothing' },
    words: /\/proc\/nothing cannot be created \(\w+\)/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'has a name that is too long',
    env: { POSTHORN_DATA_DIR: 'd'.repeat(300) },
    words: /cannot be created \(ENAMETOOLONG\)/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'is a circle of links',
    env: { POSTHORN_DATA_DIR: 'circle/data' },
    prepare: (folder) => symlinkSync('circle', join(folder, 'circle')),
    words: /cannot be created \(ELOOP\)/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'is somebody else’s',
    env: { POSTHORN_DATA_DIR: 'locked' },
    prepare: locked('locked'),
    as: 'nobody',
    words: /locked cannot be used \(EACCES\): let this user read and write it, or set/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'has a number that is none',
    env: { POSTHORN_DATA_DIR: 'data' },
    prepare: (folder) => {
      mkdirSync(join(folder, 'data'))
      writeFileSync(join(folder, 'data/folder-id'), 'NaN')
    },
    words: /data\/folder-id does not hold a number: delete it, or set/,
  },
  {
    setting: 'POSTHORN_DATA_DIR',
    what: 'has a folder where its number should be',
    env: { POSTHORN_DATA_DIR: 'data' },
    prepare: (folder) => mkdirSync(join(folder, 'data/folder-id'), { recursive: true }),
    words: /data\/folder-id cannot be read \(EISDIR\)/,
  },
  {
    setting: 'POSTHORN_BLOB_URL',
    what: 'is a file',
    env: { POSTHORN_BLOB_URL: 'file:blobs' },
    prepare: (folder) => writeFileSync(join(folder, 'blobs'), ''),
    words: /blobs cannot be created \(EEXIST\)/,
  },
  {
    setting: 'POSTHORN_BLOB_URL',
    what: 'is somebody else’s',
    env: { POSTHORN_BLOB_URL: 'file:locked' },
    prepare: locked('locked'),
    as: 'nobody',
    words: /locked cannot be used \(EACCES\)/,
  },
]

const secrets: Case[] = [
  {
    setting: 'POSTHORN_SECRET_KEY_FILE',
    what: 'names no file',
    env: { POSTHORN_SECRET_KEY_FILE: 'missing' },
    words: /missing does not exist: put the secret key there/,
  },
  {
    setting: 'POSTHORN_SECRET_KEY_FILE',
    what: 'names a folder',
    env: { POSTHORN_SECRET_KEY_FILE: '.' },
    words: /cannot be read \(EISDIR\)/,
  },
  ...['', 'short', 'k'.repeat(33), 'z'.repeat(64), '\u0000'.repeat(1 << 20)].map(
    (content): Case => ({
      setting: 'POSTHORN_SECRET_KEY_FILE',
      what: `holds ${content.length} characters that are no key`,
      env: { POSTHORN_SECRET_KEY_FILE: 'key' },
      prepare: (folder) => writeFileSync(join(folder, 'key'), content),
      words: /key, the POSTHORN_SECRET_KEY_FILE, must hold 32 bytes, or 64 hex characters/,
    }),
  ),
  {
    setting: 'POSTHORN_SECRET_KEY_FILE',
    what: 'is a device without an end',
    env: { POSTHORN_SECRET_KEY_FILE: '/dev/zero' },
    words: /must hold 32 bytes/,
  },
  {
    setting: 'POSTHORN_SECRET_KEY_FILE',
    what: 'is unreadable',
    env: { POSTHORN_SECRET_KEY_FILE: 'key' },
    prepare: (folder) => writeFileSync(join(folder, 'key'), 'k'.repeat(32), { mode: 0o000 }),
    as: 'nobody',
    words: /key cannot be read \(EACCES\): let this user read it, or set/,
  },
]

const deliveryFiles: Case[] = [
  {
    setting: 'POSTHORN_DELIVERY_FILE',
    what: 'names no file',
    env: { POSTHORN_DELIVERY_FILE: 'missing' },
    words: /missing cannot be read \(ENOENT\)/,
  },
  {
    setting: 'POSTHORN_DELIVERY_FILE',
    what: 'names a file that is not TOML',
    env: { POSTHORN_DELIVERY_FILE: 'delivery.toml' },
    prepare: (folder) => writeFileSync(join(folder, 'delivery.toml'), 'connections = \n'),
    words: /delivery\.toml:1: /,
  },
  {
    setting: 'POSTHORN_DELIVERY_FILE',
    what: 'names a source address that this machine lacks',
    env: { POSTHORN_DELIVERY_FILE: 'delivery.toml', POSTHORN_DELIVERY: 'direct' },
    prepare: (folder) =>
      writeFileSync(
        join(folder, 'delivery.toml'),
        '[[pool]]\nname = "a"\nsource = [{ address = "192.0.2.77", ehlo = "mail.example.com" }]\n',
      ),
    words: /no source of the pool a is an address of this machine/,
  },
]

const databases: Case[] = [
  ['nobody listens there', 'postgres://posthorn@127.0.0.1:1/posthorn', /ECONNREFUSED/],
  ['another program listens there', `postgres://posthorn@${taken}/posthorn`, /./],
  ['its host has no address', 'postgres://posthorn@nowhere.invalid/posthorn', /nowhere\.invalid/],
  [
    'its certificates are missing',
    'postgres://u@127.0.0.1:1/x?sslmode=verify-full&sslrootcert=/nothing',
    /ENOENT/,
  ],
  [
    'its database is missing',
    urlOf(place.connection).replace(/posthorn_test_\w+/, 'missing'),
    /"missing" does not/,
  ],
].map(
  ([what, url, words]): Case => ({
    setting: 'POSTHORN_DATABASE_URL',
    what: what as string,
    env: { POSTHORN_DATABASE_URL: url as string },
    words: new RegExp(
      `^posthorn: the database of POSTHORN_DATABASE_URL: .*${(words as RegExp).source}.*: check that the URL is right`,
    ),
  }),
)

const others: Case[] = [
  {
    setting: 'POSTHORN_OUTBOUND_IP',
    what: 'is no address of this machine',
    env: { POSTHORN_OUTBOUND_IP: lacked },
    words: /192\.0\.2\.77 is not an address of this machine \(EADDRNOTAVAIL\): set/,
  },
  {
    setting: 'POSTHORN_MAIL_HOST',
    what: 'has one label',
    env: { POSTHORN_MAIL_HOST: 'mx' },
    words: /POSTHORN_MAIL_HOST="mx" is not valid: write a host name, such as mx\.example\.com$/,
  },
  {
    setting: 'POSTHORN_MAIL_HOST',
    what: 'is a megabyte long',
    prepare: (folder) => writeFileSync(join(folder, '.env'), `POSTHORN_MAIL_HOST=${'a'.repeat(1 << 20)}\n`),
    words: /^.{1,200}$/,
  },
  {
    setting: 'POSTHORN_TRUSTED_PROXIES',
    what: 'is all addresses',
    prepare: (folder) => writeFileSync(join(folder, '.env'), 'POSTHORN_TRUSTED_PROXIES=0.0.0.0/0\n'),
    words: /POSTHORN_TRUSTED_PROXIES="0\.0\.0\.0\/0" is not valid: .*never \/0\)$/,
  },
  {
    setting: 'POSTHORN_TRUSTED_PROXIES',
    what: 'has 10,000 entries',
    prepare: (folder) =>
      writeFileSync(join(folder, '.env'), `POSTHORN_TRUSTED_PROXIES=${'10.0.0.0/8,'.repeat(10_000)}::1\n`),
    words: /^.{1,200}$/,
  },
  {
    setting: '.env',
    what: 'is a folder',
    prepare: (folder) => mkdirSync(join(folder, '.env')),
    words: /\.env cannot be read \(EISDIR\): let this user read it, or remove it$/,
  },
  {
    setting: '.env',
    what: 'is unreadable',
    prepare: (folder) => writeFileSync(join(folder, '.env'), '', { mode: 0o000 }),
    as: 'nobody',
    words: /\.env cannot be read \(EACCES\)/,
  },
  {
    setting: 'address-lists',
    what: 'has a folder in place of a file',
    env: { POSTHORN_DATA_DIR: 'data' },
    prepare: (folder) => mkdirSync(join(folder, 'data/address-lists/roles.txt'), { recursive: true }),
    words: /roles\.txt cannot be read \(EISDIR\)/,
  },
]

const lowestPort = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'))
const privileged = [
  ['POSTHORN_SMTP', '127.0.0.1:25'],
  ['POSTHORN_HTTP', '127.0.0.1:80'],
].map(
  ([setting = '', address = '']): Case => ({
    setting,
    env: { [setting]: address },
    what: 'needs a right that this user has not',
    as: 'nobody',
    words:
      /this user may not listen on 127\.0\.0\.1:\d+: give node CAP_NET_BIND_SERVICE, or set POSTHORN_\w+ to a port/,
  }),
)

const cases: Case[] = [
  ...[...listeners, ...certificates, ...folders, ...secrets, ...deliveryFiles, ...databases, ...others],
  ...(lowestPort > 80 ? privileged : []),
]

/** Only their form is checked, in src/config/absurd-values.test.ts. The servers that they name may be down at the start. */
const formAlone = [
  ...['POSTHORN_HTTP_MEMORY', 'POSTHORN_PUBLIC_URL', 'POSTHORN_ACME', 'POSTHORN_ACME_DIRECTORY'],
  ...[
    'POSTHORN_MANAGED_DOMAIN',
    'POSTHORN_DNS',
    'POSTHORN_DNS_TRUSTED',
    'POSTHORN_DELIVERY',
    'POSTHORN_RELAY_URL',
  ],
  ...['POSTHORN_RELAY_TLS', 'POSTHORN_MX_PORT', 'POSTHORN_ALLOW_PRIVATE_NETWORKS', 'POSTHORN_SMTP_TRUSTED'],
  ...['POSTHORN_DNSBL', 'POSTHORN_SMTP_MAX_SIZE', 'POSTHORN_DMARC', 'POSTHORN_ARC_TRUSTED'],
  ...['POSTHORN_DISK_RESERVE', 'POSTHORN_CLAMD', 'POSTHORN_RSPAMD', 'POSTHORN_DMARC_REPORTS'],
  'POSTHORN_TLS_REPORTS',
  ...['POSTHORN_MAX_DOWNLOAD_SIZE', 'POSTHORN_RETRY_SCHEDULE', 'POSTHORN_RETRY_LIFETIME'],
  ...['POSTHORN_RETENTION', 'POSTHORN_WEBHOOK_RETRY_SCHEDULE', 'POSTHORN_DEFAULT_LIMITS'],
  ...['POSTHORN_SIGN_UP', 'POSTHORN_OIDC_ISSUER', 'POSTHORN_OIDC_CLIENT_ID', 'POSTHORN_OIDC_CLIENT_SECRET'],
  ...['POSTHORN_OIDC_NAME', 'POSTHORN_BACKUP_PASSPHRASE', 'POSTHORN_ROLES', 'POSTHORN_LOG_LEVEL'],
  ...['POSTHORN_LOG_FORMAT', 'POSTHORN_DRAIN_DELAY', 'POSTHORN_OPERATOR_MAIL', 'POSTHORN_WORKERS'],
]

test('this file tries every setting that names something on this machine', () => {
  const tried = cases.map(({ setting }) => setting).filter((name) => name.startsWith('POSTHORN_'))
  assert.deepEqual([...new Set([...tried, ...formAlone])].toSorted(), listSettings().toSorted())
})

interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

/** Runs `posthorn serve` in the folder until it ends. A program that starts is ended and has no status. */
async function serve(folder: string, env: Record<string, string>, as: Case['as']): Promise<Ended> {
  const identity = as === 'nobody' && isRoot ? { uid: nobody, gid: nobody } : {}
  const child = spawn(program, ['serve', '--json'], { cwd: folder, env, ...identity })
  const timer = setTimeout(() => child.kill('SIGKILL'), refusedMs)
  const ended: Ended = { status: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.stdout += text
    child.kill('SIGTERM')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ended.stderr += text))
  const [status] = await once(child, 'close')
  clearTimeout(timer)
  return { ...ended, status: ended.stdout === '' ? status : null }
}

/** The program's folder, and settings under which it would start. */
function makeGround({ as, prepare }: Case): { folder: string; env: Record<string, string> } {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-wrong-'))
  prepare?.(folder)
  if (as === 'nobody' && isRoot) chownSync(folder, nobody, nobody)
  const ours = {
    POSTHORN_DATABASE_URL: urlOf(place.connection),
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
    POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
  }
  const env = {
    ...inherited(),
    ...(as === 'nobody' ? { HOME: folder } : ours),
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
    POSTHORN_DNS: '127.0.0.1:9',
    POSTHORN_LOG_LEVEL: 'error',
  }
  return { folder, env }
}

describe('F10, F2, F13: a wrong setting is reported in one line', { concurrency: 2 }, () => {
  for (const one of cases)
    test(`${one.setting} ${one.what}`, async (t) => {
      const { folder, env } = makeGround(one)
      t.after(() => {
        // An ordinary user cannot read its own locked folder.
        if (existsSync(join(folder, 'locked'))) chmodSync(join(folder, 'locked'), 0o700)
        rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
      })
      const { status, stdout, stderr } = await serve(folder, { ...env, ...one.env }, one.as)
      // Messages about the first start of an embedded database come before.
      const lines = stderr.split('\n').filter((line) => !/^(?:creating the|starting) PostgreSQL/.test(line))
      assert.deepEqual([status, stdout, lines.length, lines[1]], [1, '', 2, ''], stderr)
      assert.match(lines[0]!, /^posthorn: /)
      assert.doesNotMatch(stderr, /\bat .*[:(]\d+|node:internal/)
      assert.ok(lines[0]!.includes(one.setting), lines[0])
      assert.match(lines[0]!, one.words)
      assert.ok(lines[0]!.length < 1_000)
    })
})
