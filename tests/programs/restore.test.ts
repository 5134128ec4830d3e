// Restores of a backup: the same rows, readable secrets, no damaged copy, and a copy that is held.
import assert from 'node:assert/strict'
import { cpSync, type Dirent, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { PersonId } from '../../src/base/ids.ts'
import { silentLog } from '../../src/base/log.ts'
import { DiskBlobs } from '../../src/blobs/disk.ts'
import { readSettings } from '../../src/config/settings.ts'
import { leftOut } from '../../src/flow/backup/left-out.ts'
import { formatManifest, type Manifest, parseManifest } from '../../src/flow/backup/manifest.ts'
import { takeBackup } from '../../src/flow/backup/take-backup.ts'
import { verifyBackup } from '../../src/flow/backup/verify-backup.ts'
import { Sessions, startSession } from '../../src/flow/people/sessions.ts'
import { openDkimKey } from '../../src/flow/secrets/dkim-secret.ts'
import { openSigningSecret } from '../../src/flow/secrets/signing-secret.ts'
import { openExisting } from '../../src/foundation.ts'
import { Db } from '../../src/postgres/db.ts'
import { lockSchema, repeatMigrations } from '../../src/postgres/migrate.ts'
import { findSealed } from '../../src/store/database-identity.ts'
import type { DkimKeyRow } from '../../src/store/domains/dkim-keys.ts'
import { Api } from '../support/api.ts'
import {
  type BackupAnswer,
  command,
  countFiles,
  digestTables,
  emptyPlace,
  killWhen,
  temporaryFolder,
} from '../support/backup.ts'
import {
  type BackupStage,
  filedIn,
  largeBytes,
  receiveMail,
  setBackupStage,
  sourceOf,
} from '../support/backup-stage.ts'
import { ownProgram, run } from '../support/command.ts'
import { registerDomain } from '../support/customer-domain.ts'
import { send, untilStates } from '../support/node.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { type Posthorn, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Adds one of everything, and pending work: an outgoing mail, and webhook calls about it. */
async function fill({ posthorn, api, inboxes: [inbox, other], sink, receiver }: BackupStage) {
  await registerDomain(api, 'customer.test')
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  receiver.answer('/', (response) => void response.writeHead(503).end())
  const body = { url: receiver.url('/') }
  await api.want('/v1/webhooks', { method: 'POST', status: 201, body })
  for (let n = 0; n < 4; n++)
    await receiveMail(posthorn, inbox, `<mail-${n}@sender.test>`, n % 2 ? largeBytes : 900)
  const mails = await filedIn(api, inbox, 4)
  const local = await send(api, inbox, [other.address])
  await untilStates(api, local.submission.id, 'delivered')
  const waiting = await send(api, inbox, ['far@away.test'])
  await untilStates(api, waiting.submission.id, 'deferred')
  await until('the calls to fail', () => receiver.calls.length > 0)
  return { mails, waiting }
}

const manifestOf = (folder: string): Manifest =>
  parseManifest(readFileSync(join(folder, 'manifest.json'), 'utf8'))!

/** A copy of the backup that may be damaged. */
function copyOf(t: TestContext, folder: string): string {
  const copy = join(temporaryFolder(t), 'copy')
  cpSync(folder, copy, { recursive: true })
  return copy
}

/** Damages a byte. Returns a function that repairs it. */
function flipByte(file: string): () => void {
  const bytes = readFileSync(file)
  const damaged = Buffer.from(bytes)
  damaged[Math.floor(bytes.length / 2)]! ^= 1
  writeFileSync(file, damaged)
  return () => writeFileSync(file, bytes)
}

/** Tables whose rows differ in a copy. The outbox is renumbered by the transactions of another server. */
const ownOfEach = [...Object.keys(leftOut), 'outbox', 'outbox_cursor']

/** Signs in a person with an account. Returns the session's token. */
async function signIn(env: Record<string, string>): Promise<string> {
  const { db, clock, close } = await openExisting(readSettings(env), silentLog, () => {})
  try {
    const [person] = await db.query<{ id: PersonId }>('select id from person')
    const from = { ip: '127.0.0.1', userAgent: 'a test', way: 'link' } as const
    const { token } = await startSession({ db, clock }, { personId: person!.id, ...from })
    assert.ok(await new Sessions({ db, clock }).find(token))
    return token
  } finally {
    await close()
  }
}

/** Digests of the database: each table's rows, and that every secret in it opens. */
async function digestsOf(env: Record<string, string>): Promise<Record<string, string>> {
  const { db, secretBox, close } = await openExisting(readSettings(env), silentLog, () => {})
  try {
    const keys = await db.query<DkimKeyRow>(
      'select domain, selector, algorithm, sealed_key as "sealedKey", public_record as "publicRecord" from dkim_key',
    )
    assert.equal(keys.length, 3)
    for (const key of keys) openDkimKey(secretBox, key)
    const { webhook } = await findSealed(db)
    assert.match(openSigningSecret(secretBox, webhook!.id, webhook!.sealed), /^whsec_/)
    const [rows] = await db.query<{ people: number; told: number }>(
      'select (select count(*) from person)::int as people, (select count(*) from outbox)::int as told',
    )
    assert.ok(rows!.people > 0)
    const digests = await digestTables(db)
    for (const name of ownOfEach) delete digests[name]
    return { ...digests, told: String(rows!.told) }
  } finally {
    await close()
  }
}

test('hostile 31: a backup restores a complete service', async (t) => {
  const stage = await setBackupStage(t)
  const { posthorn, secret, folder, sink, receiver } = stage
  const { mails, waiting } = await fill(stage)
  assert.equal(await posthorn.stop(), 0)
  const session = await signIn(posthorn.env)
  const original = await digestsOf(posthorn.env)
  const answer = await posthorn.cli<BackupAnswer>(['backup', folder])
  assert.deepEqual([answer.blobs.count, answer.key], [2, 'sealed'])

  await t.test(
    'every table has its rows and every secret opens, in an external and in our own database',
    async (t) => {
      const external = await emptyPlace(t, posthorn, 'external')
      assert.equal((await command(['restore', folder], external)).status, 0)
      assert.deepEqual(await digestsOf(external), original)
      const again = join(temporaryFolder(t), 'again')
      assert.equal((await command(['backup', again], external)).status, 0)
      const env = await emptyPlace(t, posthorn)
      assert.equal((await command(['restore', again], env)).status, 0)
      assert.deepEqual(await digestsOf(env), original)
      // Neither restore overwrites existing data.
      for (const place of [external, { ...external, POSTHORN_DATA_DIR: join(temporaryFolder(t), 'new') }]) {
        const { status, stderr } = await command(['restore', folder], place)
        assert.equal(status, 1)
        assert.match(stderr, /^posthorn: [^\n]+ is not empty[^\n]*: restore into an empty [^\n]+\n$/m)
      }
    },
  )

  await t.test('a flipped byte in any file is found, and nothing of that backup is restored', async (t) => {
    const options = { passphrase: null, progress: () => {} }
    const files = (readdirSync(folder, { recursive: true, withFileTypes: true }) as Dirent[])
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    assert.ok(files.length > 45)
    const damaged = copyOf(t, folder)
    for (const name of files) {
      const restoreByte = flipByte(join(damaged, name))
      const { status, faults } = await verifyBackup(damaged, options)
      assert.deepEqual([status, faults.length, faults[0]?.includes(name)], ['damaged', 1, true], name)
      restoreByte()
    }
    assert.equal((await verifyBackup(damaged, options)).status, 'ok')
    const blob = files.find((name) => name.startsWith('blobs/'))!
    for (const name of ['manifest.json', 'key.sealed', 'blobs.jsonl', blob, 'tables/message.copy.zst']) {
      const restoreByte = flipByte(join(damaged, name))
      const env = await emptyPlace(t, posthorn, 'external')
      const { status, stderr } = await command(['restore', damaged], env)
      assert.equal(status, 1, name)
      assert.match(stderr, /^posthorn: [^\n]*is damaged: [^\n]+\n$/m)
      // Either the restore wrote no data, or the partial data does not start.
      if (existsSync(env['POSTHORN_DATA_DIR']!)) await refuseToServe(env)
      restoreByte()
    }
  })

  await t.test('without the right passphrase nothing is changed', async (t) => {
    const { POSTHORN_BACKUP_PASSPHRASE: _, ...env } = await emptyPlace(t, posthorn, 'external')
    const wrong = { ...env, POSTHORN_BACKUP_PASSPHRASE: 'another horse entirely' }
    for (const [place, words] of [
      [env, /^posthorn: the secret key of the backup is sealed by a passphrase: use --passphrase-file FILE/],
      [wrong, /^posthorn: the passphrase does not open the key of this backup: [^\n]+\n$/],
    ] as const) {
      const { status, stderr } = await command(['restore', folder], place)
      assert.equal(status, 1)
      assert.match(stderr, words)
      assert.ok(!existsSync(env['POSTHORN_DATA_DIR']!))
    }
    assert.equal((await command(['backup', 'verify', folder], wrong)).status, 1)
    const file = join(temporaryFolder(t), 'passphrase')
    writeFileSync(file, `${posthorn.env['POSTHORN_BACKUP_PASSPHRASE']}\n`)
    const opened = await command(['backup', 'verify', folder, '--passphrase-file', file], env)
    assert.match(opened.stdout, /The passphrase opens its key\.\n$/)
  })

  await t.test('a killed restore starts no service, and continues when it is run again', async (t) => {
    const env = await emptyPlace(t, posthorn)
    const isHalfWay = () => countFiles(join(env['POSTHORN_DATA_DIR']!, 'blobs')) > 0
    assert.ok(await killWhen(['restore', folder], env, isHalfWay))
    await refuseToServe(env)
    const again = await command(['restore', folder], env)
    assert.equal(again.status, 0, again.stderr)
    assert.deepEqual(await digestsOf(env), original)
  })

  await t.test('a backup of an older schema is migrated', async (t) => {
    const older = join(temporaryFolder(t), 'older')
    const { migrations } = manifestOf(folder)
    const db = new Db({ connection: await emptyDatabase(t) })
    await db.longTransaction('begin', async (tx, client) => {
      await lockSchema(client)
      await repeatMigrations(client, migrations.slice(0, 1))
      await tx.query(`insert into organization (id, name, status, limits, created_at, updated_at)
        values (gen_random_uuid(), 'From before', 'active', '{}', now(), now())`)
    })
    const blobs = new DiskBlobs(older)
    await takeBackup({ db, blobs, progress: () => {} }, { folder: older, version: '0.0.1', key: null })
    await db.close()
    const env = await emptyPlace(t, posthorn, 'external')
    keepKey(posthorn, env)
    const restored = await command(['restore', older], env)
    assert.equal(restored.status, 0, restored.stderr)
    const { organizations } = JSON.parse((await command(['org', 'list', '--json'], env)).stdout)
    assert.deepEqual(
      organizations.map(({ name }: { name: string }) => name),
      ['From before'],
    )
    const schema = JSON.parse((await command(['migrate', '--json'], env)).stdout)
    assert.deepEqual(
      schema.migrations,
      migrations.map(({ name }) => name),
    )
  })

  await t.test('a backup of a newer schema is refused', async (t) => {
    const newer = copyOf(t, folder)
    const manifest = manifestOf(folder)
    const migrations = [...manifest.migrations, { name: '9999_later.sql', checksum: 'x' }]
    writeFileSync(join(newer, 'manifest.json'), formatManifest({ ...manifest, migrations }))
    const { status, stderr } = await command(['restore', newer], await emptyPlace(t, posthorn, 'external'))
    assert.equal(status, 1)
    assert.match(stderr, /^posthorn: the schema of the backup is newer than this release [^\n]+\n$/)
  })

  await t.test('a backup without the key is restored if the key is there already', async (t) => {
    const keyless = join(temporaryFolder(t), 'keyless')
    assert.equal((await posthorn.cli<BackupAnswer>(['backup', keyless, '--without-key'])).key, 'left out')
    assert.ok(!existsSync(join(keyless, 'key.sealed')))
    const env = await emptyPlace(t, posthorn, 'external')
    const data = env['POSTHORN_DATA_DIR']!
    assert.match(
      (await command(['restore', keyless], env)).stderr,
      /the backup was made without the secret key: put the key of the original into/,
    )
    mkdirSync(data, { mode: 0o700 })
    cpSync(join(posthorn.folder, 'secret-key'), join(data, 'secret-key'))
    assert.equal((await command(['restore', keyless], env)).status, 0)
    assert.deepEqual(await digestsOf(env), original)
  })

  await t.test('the copy sends nothing until it is released, and then the waiting mail leaves', async (t) => {
    const env = await emptyPlace(t, posthorn, 'external')
    const restored = await command(['restore', folder], env)
    assert.equal(restored.status, 0)
    assert.match(restored.stdout, /Undone: keys revoked, members removed, .* after 20\d\d-/)
    sink.rule = () => null
    receiver.answer('/', (response) => void response.writeHead(204).end())
    const before = [sink.connections, receiver.connections()]
    const copy = await startPosthorn(t, { env })
    const copied = new Api(() => copy.http, secret)
    // The person, or a reset, may have ended a session since.
    const headers = { cookie: `__Host-posthorn=${session}` }
    assert.equal((await fetch(`${copy.http}/app/v1/me`, { headers })).status, 401)
    for (const { message, source } of mails) {
      assert.deepEqual(await sourceOf(copied, message), source)
      assert.deepEqual(await copied.want(`/v1/messages/${message.id}`), message)
    }
    // Mail sent in a rehearsal is captured, and no endpoint receives its events.
    const { told, twice } = await countCalls(copy)
    assert.equal(twice, 0)
    const captured = await send(copied, stage.inboxes[0], ['rehearsal@away.test'])
    await untilStates(copied, captured.submission.id, 'delivered')
    await until('its calls to wait', async () => (await countCalls(copy)).told >= told + 2)
    const fromMs = performance.now()
    await until('a few rounds of every loop', () => performance.now() - fromMs > 3_000)
    await untilStates(copied, waiting.submission.id, 'deferred')
    assert.deepEqual([sink.connections, receiver.connections()], before)

    // The doctor checks whether the relay answers.
    assert.match((await command(['doctor'], env)).stdout, /! restored copy +backup of [^\n]+, held: /)
    const looked = sink.connections
    assert.deepEqual(await copy.cli(['restore', 'release']), { released: true })
    assert.equal((await command(['restore', 'release'], env)).status, 1)
    assert.deepEqual(
      [sink.connections, receiver.connections()],
      [looked, before[1]],
      'a node goes on holding',
    )
    assert.equal((await countCalls(copy)).twice, 0)
    assert.equal(await copy.stop(), 0)
    await copy.start()
    await untilStates(copied, waiting.submission.id, 'delivered')
    assert.deepEqual(
      sink.copies.map(({ recipient }) => recipient),
      ['far@away.test'],
    )
    await until('the calls', () => receiver.connections() > before[1]!)
    assert.equal(await copy.stop(), 0)
  })
})

/** Puts the key of the original at the copy's key path. */
function keepKey(original: Posthorn, { POSTHORN_DATA_DIR: folder = '' }: Record<string, string>): void {
  mkdirSync(folder, { mode: 0o700 })
  cpSync(join(original.folder, 'secret-key'), join(folder, 'secret-key'))
}

async function refuseToServe(env: Record<string, string>): Promise<void> {
  const { status, stdout, stderr } = await run(ownProgram, ['serve', '--json'], env, tmpdir())
  assert.deepEqual([status, stdout], [1, ''])
  assert.match(
    stderr,
    /^posthorn: a restore into [^\n]+ was interrupted: run the same posthorn restore again[^\n]+\n$/,
  )
}

/** Counts calls that were made or wait, and those that repeat the event of another call. */
async function countCalls(posthorn: Posthorn): Promise<{ told: number; twice: number }> {
  const client = new pg.Client(posthorn.database())
  await client.connect()
  const { rows } = await client
    .query(
      `select count(*)::int as told, (count(*) - count(distinct (webhook_id, item->>'id')))::int as twice
      from webhook_delivery`,
    )
    .finally(() => client.end())
  return rows[0]
}
