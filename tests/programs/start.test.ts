// The checks of the start before work: a server that keeps its commits, the right folder, and no secret in the output.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Listening } from '../../src/app.ts'
import { banner, type Pages } from '../../src/cli/banner.ts'
import { readSettings } from '../../src/config/settings.ts'
import { Db } from '../../src/postgres/db.ts'
import { requireDurable } from '../../src/postgres/requirements.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { ExternalServer } from '../support/external-server.ts'
import { makePlace, startNode, urlOf } from '../support/node.ts'
import { inherited, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-start-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  return folder
}

test('hostile 9: an external server that may lose commits is refused, and sessions always commit durably', async (t) => {
  const server = await ExternalServer.make(t)
  const folder = emptyFolder(t)
  const settings = { ...inherited(), POSTHORN_DATA_DIR: join(folder, 'data') }

  await t.test(
    'fsync or full_page_writes off stops the start with one line, and fails the doctor',
    async () => {
      const lies = [['fsync=off'], ['full_page_writes=off'], ['fsync=off', 'full_page_writes=off']]
      for (const off of lies) {
        const env = { ...settings, POSTHORN_DATABASE_URL: await server.start(...off) }
        const { status, stdout, stderr } = await run(ownProgram, ['serve', '--json'], env, folder)
        assert.deepEqual([status, stdout], [1, ''])
        assert.match(stderr, /^posthorn: [^\n]*\n$/)
        assert.ok(stderr.includes(`runs with ${off.toSorted().join(' and ')},`), stderr)
        assert.ok(!stderr.includes('secret'), stderr)
        const doctor = await runCommand(['doctor', '--json'], env, folder)
        const checks: { name: string; status: string; detail: string }[] = JSON.parse(doctor.stdout).checks
        const check = checks.find(({ name }) => name === 'database')!
        assert.deepEqual([doctor.status, check.status, check.detail.includes(off[0]!)], [1, 'failed', true])
      }
      assert.deepEqual(await server.ask(`select from pg_tables where schemaname = 'public'`), [])
    },
  )

  await t.test('a schema that another command holds stops the start with one line', async (t) => {
    const url = await server.start()
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    t.after(() => holder.end())
    await holder.query('begin; create table schema_migration (version integer)')
    const refused = run(ownProgram, ['migrate'], { ...settings, POSTHORN_DATABASE_URL: url }, folder)
    // The wait ends after a minute in the same way.
    await until('the start to wait for the schema', async () => {
      const waiting = `select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'`
      return (await server.ask(waiting)).length > 0
    })
    const { status, stderr } = await refused
    assert.equal(status, 1)
    assert.match(
      stderr,
      /^posthorn: [^\n]*the schema cannot be updated: [^\n]* holds a table, wait [^\n]*\n$/,
    )
  })

  const connection = { connectionString: await server.start('synchronous_commit=off') }
  const sessionsSay = async () => {
    const db = new Db({ connection })
    await requireDurable(db)
    const asked = `select current_setting('synchronous_commit') as value`
    const client = await db.dedicated()
    const dedicated = (await client.query(asked)).rows[0].value
    const inTransaction = await db.transaction((tx) => tx.query<{ value: string }>(asked))
    const [row] = await db.query<{ value: string }>(asked)
    client.release()
    await db.close()
    return [row!.value, inTransaction[0]!.value, dedicated]
  }

  await t.test(
    'synchronous_commit off in the server, the role or the database is on in every session',
    async () => {
      assert.deepEqual(await server.ask('show synchronous_commit'), [{ synchronous_commit: 'off' }])
      assert.deepEqual(await sessionsSay(), ['on', 'on', 'on'])
      for (const whose of ['role posthorn', 'database postgres', 'role posthorn in database postgres']) {
        for (const value of ['off', 'local']) {
          await server.ask(`alter ${whose} set synchronous_commit = ${value}`)
          assert.deepEqual(await sessionsSay(), ['on', 'on', 'on'], `${whose} ${value}`)
        }
      }
    },
  )

  await t.test('a stricter synchronous_commit stays', async () => {
    for (const value of ['remote_write', 'remote_apply']) {
      await server.ask(`alter role posthorn in database postgres set synchronous_commit = ${value}`)
      assert.deepEqual(await sessionsSay(), [value, value, value])
    }
  })

  await t.test('over TCP a session and its locks end within 15 s of its machine', async () => {
    const db = new Db({ connection: { connectionString: await server.startOnTcp() } })
    const names = ['idle', 'interval', 'count'].map((name) => `tcp_keepalives_${name}`)
    const [row] = await db.query<{ set: string[] }>(
      'select array_agg(current_setting(name) order by n) as set from unnest($1::text[]) with ordinality as s (name, n)',
      [[...names, 'tcp_user_timeout']],
    )
    await db.close()
    assert.deepEqual(row!.set, ['5', '3', '3', '14000'])
  })

  await t.test('a standby stops the start with one line, and the doctor reports the same', async () => {
    const env = { ...settings, POSTHORN_DATABASE_URL: await server.startAsStandby() }
    const words = 'the PostgreSQL of POSTHORN_DATABASE_URL is a standby (read-only)'
    const { status, stderr } = await run(ownProgram, ['serve'], env, folder)
    const line = `posthorn: ${words}: use the primary, or an address that follows it\n`
    assert.deepEqual([status, stderr], [1, line])
    const doctor = await runCommand(['doctor', '--json'], env, folder)
    const { checks } = JSON.parse(doctor.stdout)
    const check = checks.find(({ name }: { name: string }) => name === 'database')
    assert.deepEqual([doctor.status, check.status, check.detail], [1, 'failed', words])
  })
})

test('every session of a running node commits durably, whatever its database is set to', async (t) => {
  const place = await makePlace(t)
  const client = new pg.Client(place.connection)
  await client.connect()
  place.after(() => client.end())
  const { rows } = await client.query('select current_database() as name')
  await client.query(`alter database ${rows[0].name} set synchronous_commit = off`)
  const { foundation } = await startNode(place)
  // The folder's claim and the service's own connection use sessions like these two.
  const [row] = await foundation.db.query<{ value: string }>(
    `select current_setting('synchronous_commit') as value`,
  )
  assert.equal(row!.value, 'on')
  const dedicated = await foundation.db.dedicated()
  const heard = await dedicated.query(`select current_setting('synchronous_commit') as value`)
  dedicated.release()
  assert.equal(heard.rows[0].value, 'on')
})

const commands = [
  ['doctor'],
  ['org', 'list'],
  ['key', 'list', '--org', '00000000-0000-7000-8000-000000000000'],
  ['queue', 'list'],
]

test('in the wrong folder only serve, migrate and demo make files', async (t) => {
  const folder = emptyFolder(t)
  for (const words of commands) {
    const { status, stdout, stderr } = await runCommand(words, inherited(), folder)
    assert.equal(status, 1, words.join(' '))
    const said = words[0] === 'doctor' ? stdout.split('\n')[0]! : stderr
    assert.match(said, /there is no data folder at \S+\/data.*, or set POSTHORN_DATA_DIR/)
    if (words[0] !== 'doctor') assert.match(stderr, /^posthorn: [^\n]+\n$/)
    assert.deepEqual(readdirSync(folder), [])
  }
  // Nor does it create the folder, or a database in it.
  mkdirSync(join(folder, 'data'))
  assert.equal((await runCommand(['org', 'list'], inherited(), folder)).status, 1)
  assert.deepEqual(readdirSync(join(folder, 'data')), [])
  const migrated = await run(ownProgram, ['migrate'], inherited(), folder)
  assert.equal(migrated.status, 0, migrated.stderr)
  assert.equal((await runCommand(['org', 'list'], inherited(), folder)).status, 0)
})

test('no command takes an external database without tables for ours', async (t) => {
  const place = await makePlace(t)
  const folder = emptyFolder(t)
  const client = new pg.Client(place.connection)
  await client.connect()
  place.after(() => client.end())
  await client.query('alter table schema_migration rename to another')
  const env = { ...inherited(), POSTHORN_DATABASE_URL: urlOf(place.connection) }
  writeFileSync(join(folder, 'key'), 'k'.repeat(32))
  const { status, stderr } = await runCommand(
    ['org', 'list'],
    { ...env, POSTHORN_SECRET_KEY_FILE: 'key' },
    folder,
  )
  assert.equal(status, 1)
  assert.match(stderr, /^posthorn: the database has no tables of Posthorn: [^\n]+\n$/)
})

/**
 * Loaded before the program. Records step by step how the key is written to the disk, and kills the program after `LAST`
 * steps. With `OTHER`, another process is the first to make the key.
 */
const watchDisk = `import fs from 'node:fs/promises'
import { appendFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { syncBuiltinESMExports } from 'node:module'
const { STEPS, LAST, OTHER } = process.env
let done = 0
const paths = new WeakMap()
const nameOf = (path) => basename(path).replace(/secret-key\\..*/, 'draft')
let isMaking = false
const note = (what, path) => {
  const name = nameOf(path)
  isMaking ||= what === 'writeFile' && ['secret-key', 'draft'].includes(name)
  if (!isMaking || !['data', 'secret-key', 'draft'].includes(name)) return
  if (LAST === String(done++)) process.kill(process.pid, 'SIGKILL')
  appendFileSync(STEPS, what + ' ' + name + '\\n')
}
const { open, link, rm } = fs
fs.open = async (path, ...rest) => {
  const file = await open(path, ...rest)
  paths.set(file, path)
  return file
}
const files = Object.getPrototypeOf(await open('/dev/null'))
for (const what of ['writeFile', 'sync']) {
  const real = files[what]
  files[what] = function (...rest) {
    if (paths.has(this)) note(what, paths.get(this))
    return real.apply(this, rest)
  }
}
fs.link = (from, to) => {
  note('link', to)
  if (OTHER) writeFileSync(to, OTHER)
  return link(from, to)
}
fs.rm = (path, ...rest) => {
  note('rm', path)
  return rm(path, ...rest)
}
syncBuiltinESMExports()
`
const steps = ['writeFile draft', 'sync draft', 'link secret-key', 'rm draft', 'sync data']

/** The program in a folder of its own, without a secret key, over a database without one. */
async function keylessProgram(t: TestContext) {
  const [place, folder] = [await makePlace(t), emptyFolder(t)]
  const [preload, stepsFile, keyFile] = ['watch.mjs', 'steps', 'data/secret-key'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeFileSync(preload, watchDisk)
  const env = {
    ...inherited(),
    POSTHORN_DATA_DIR: join(folder, 'data'),
    STEPS: stepsFile,
    POSTHORN_DATABASE_URL: urlOf(place.connection),
  }
  const watched = (more: Record<string, string>) =>
    run(ownProgram, ['migrate'], { ...env, ...more, NODE_OPTIONS: `--import=${preload}` }, folder)
  return {
    watched,
    plain: () => runCommand(['migrate'], env, folder),
    readSteps: () => readFileSync(stepsFile, 'utf8').trim().split('\n'),
    readKey: () => readFileSync(keyFile, 'utf8'),
  }
}

test('the secret key is on the disk, and then its name, before any data is sealed with it', async (t) => {
  const { watched, plain, readSteps, readKey } = await keylessProgram(t)
  const made = await watched({})
  assert.equal(made.status, 0, made.stderr)
  // The folder is flushed again for the blobs in it.
  assert.deepEqual(readSteps().slice(0, steps.length), steps)
  assert.match(readKey(), /^[0-9a-f]{64}$/)
  assert.equal((await plain()).status, 0)
})

for (const [done, step] of steps.entries())
  test(`a first start after one killed before «${step}» succeeds`, async (t) => {
    const { watched, plain, readKey } = await keylessProgram(t)
    assert.equal((await watched({ LAST: String(done) })).status, null)
    const second = await plain()
    assert.equal(second.status, 0, second.stderr)
    assert.match(readKey(), /^[0-9a-f]{64}$/)
  })

test('two processes that make the secret key at the same moment share one key', async (t) => {
  const { watched, plain, readKey } = await keylessProgram(t)
  const other = 'ab'.repeat(32)
  const made = await watched({ OTHER: other })
  assert.equal(made.status, 0, made.stderr)
  assert.equal(readKey(), other)
  assert.equal((await plain()).status, 0)
})

test('hostile 32: the start and the doctor say what a dangerous setting exposes, and what to do', async (t) => {
  const posthorn = await startPosthorn(t, {
    env: { POSTHORN_MAIL_HOST: 'mx.example', POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' },
  })
  const exposed = 'POSTHORN_ALLOW_PRIVATE_NETWORKS is true: customers can make this machine call .*'
  const mend = 'unset POSTHORN_ALLOW_PRIVATE_NETWORKS'
  // The line that reports readiness is on another stream, and may arrive first.
  await until('the start to say so', () =>
    new RegExp(`"level":"warn".*"${exposed}; ${mend}`).test(posthorn.log()),
  )
  const { stdout } = await runCommand(['doctor'], posthorn.env, posthorn.folder)
  assert.match(stdout, new RegExp(`^! exposure +${exposed}\\. Fix: ${mend}`, 'm'))
})

const secret = 'hUnter2-4711-verySecret'
const hexKey = 'c0ffee'.padEnd(64, '7')
const pem = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIGhVbnRlcjI\n-----END PRIVATE KEY-----'

/** Mistyped settings that contain secrets. Each of them stops the start. */
const mistyped: [string, string][] = [
  ...[
    `postgres:/u:${secret}@127.0.0.1:1/x`,
    `u:${secret}@127.0.0.1:1/x`,
    `mysql://u:${secret}@127.0.0.1/x`,
    `postgres://u:${secret}%@127.0.0.1:1/x`,
    `postgres://u:1#${secret}@127.0.0.1/x`,
    `postgres://u:1/${secret}@127.0.0.1/x`,
    `postgres://u:1?${secret}@127.0.0.1/x`,
    `postgres://u:${secret}@127.0.0.1:99999/x`,
    `postgres://u:${secret}@127.0.0.1:1/x`,
    `postgres://127.0.0.1:1/x?password=${secret}`,
    secret,
  ].map((value): [string, string] => ['POSTHORN_DATABASE_URL', value]),
  ...[
    `smtp://u:${secret}%25%@127.0.0.1`,
    `smtp:/u:${secret}@127.0.0.1`,
    `http://u:${secret}@127.0.0.1`,
    `smtp://u:1/${secret}@127.0.0.1`,
    `smtp://u:1#${secret}@127.0.0.1`,
    `smtp://u:${secret}@127.0.0.1/path`,
    `smtp://u:${secret}@127.0.0.1?tls=no`,
    `smtp://u:${secret}@127.0.0.1:99999`,
    secret,
  ].map((value): [string, string] => ['POSTHORN_RELAY_URL', value]),
  ['POSTHORN_SECRET_KEY_FILE', hexKey],
  ['POSTHORN_SECRET_KEY_FILE', Buffer.from(hexKey, 'hex').toString('base64')],
  ['POSTHORN_SMTP_TLS_KEY', pem],
  ['POSTHORN_PUBLIC_URL', `ftp://u:${secret}@mail.example.com`],
  ['POSTHORN_BLOB_URL', `s3://u:${secret}@bucket`],
  ['POSTHORN_HTTP', `http://u:${secret}@127.0.0.1:8025`],
  ['POSTHORN_SMTP', `u:${secret}@127.0.0.1:2525`],
  ['POSTHORN_CLAMD', `tcp://u:${secret}@127.0.0.1`],
  ['POSTHORN_DNS', `u:${secret}@127.0.0.1`],
  ['POSTHORN_DNSBL', `${secret}.dq.example.net,`],
  ['POSTHORN_MAIL_HOST', hexKey],
]

for (const [index, [name, value]] of mistyped.entries())
  test(`hostile 16: a failing start does not print a secret in ${name} (${index})`, async (t) => {
    const folder = emptyFolder(t)
    const env = { ...inherited(), [name]: value }
    // A process of its own, so that all output to its streams is captured.
    const { status, stdout, stderr } = await run(ownProgram, ['serve', '--json'], env, folder)
    assert.equal(status, 1, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, /^posthorn: [^\n]+\n$/)
    const told = [secret, hexKey, 'hUnter2', 'MC4CAQAw', value].filter((text) => stderr.includes(text))
    assert.deepEqual(told, [], stderr)
  })

const listener = { host: '127.0.0.1', port: 8025 }
const listening: Listening = {
  http: listener,
  https: null,
  operator: listener,
  smtp: null,
  submission: null,
  submissions: null,
}

test('a start ends with the next step, and never links to pages that are not built', () => {
  const read = (env: Record<string, string>) => readSettings({ ...env, POSTHORN_DATA_DIR: '/nowhere' })
  const development = { secret: 'ph_x', signInToken: 'token' }
  const said = (env: Record<string, string>, pages: Pages) =>
    banner({ settings: read(env), hold: null }, listening, {
      development: env['POSTHORN_MAIL_HOST'] ? null : development,
      pages,
    })
  const production = {
    POSTHORN_MAIL_HOST: 'mx.example.com',
    POSTHORN_MANAGED_DOMAIN: 'inbox.example.com',
    POSTHORN_PUBLIC_URL: 'https://mail.example.com',
  }
  const steps = said(production, 'built')
  assert.match(
    steps,
    /Next:\n\n {2}posthorn doctor .*\n {2}posthorn org create .*\n\n {2}People sign up at https:\/\/mail\.example\.com\/sign-up; [^\n]*\n$/,
  )
  assert.doesNotMatch(said({ ...production, POSTHORN_SIGN_UP: 'invited' }, 'built'), /sign-up/)
  const unbuilt = said(production, 'missing')
  assert.match(unbuilt, /Pages +the dashboard is not built: run `npm run build`/)
  assert.doesNotMatch(unbuilt, /sign-up/)
  assert.match(said({}, 'built'), /sign-in#token/)
  assert.doesNotMatch(said({}, 'missing'), /sign-in#token/)
})
