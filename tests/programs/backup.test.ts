// Backups: made while mail flows, restored whole or not at all, held until the operator's release. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { silentLog } from '../../src/base/log.ts'
import { leftOut } from '../../src/flow/backup/left-out.ts'
import { BlobSweeper } from '../../src/flow/upkeep/sweep-blobs.ts'
import { Db } from '../../src/postgres/db.ts'
import { listPending, lockSchema, migrate, repeatMigrations } from '../../src/postgres/migrate.ts'
import { listTables } from '../../src/postgres/tables.ts'
import { isBackupUnderWay, lockBackup } from '../../src/store/backups.ts'
import { Api, type Inbox, type Message } from '../support/api.ts'
import {
  type BackupAnswer,
  command,
  countFiles,
  emptyPlace,
  heavyMail,
  killWhen,
  passphrase,
  peakMemory,
  temporaryFolder,
  verify,
} from '../support/backup.ts'
import {
  type BackupStage,
  filedIn,
  inboundOf,
  largeBytes,
  receiveMail,
  setBackupStage,
  sourceOf,
} from '../support/backup-stage.ts'
import { makePlace, send, startNode } from '../support/node.ts'
import { emptyDatabase, testDatabase } from '../support/postgres.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

/** Sends, receives and deletes mail concurrently until it is stopped. */
function workOn(stage: BackupStage, inbox: Inbox): { stop(): Promise<unknown> } {
  const load = { running: true, number: 0 }
  const work = async () => {
    while (load.running) {
      const number = load.number++
      await receiveMail(stage.posthorn, inbox, `<busy-${number}@sender.test>`, number % 3 ? 700 : largeBytes)
      await send(stage.api, inbox, [`busy-${number}@far.test`])
      const [oldest] = await inboundOf(stage.api, inbox)
      if (oldest && number % 2) await stage.api.call(`/v1/messages/${oldest.id}`, { method: 'DELETE' })
    }
  }
  const working = Promise.all([work(), work()])
  working.catch(() => {}) // reported by `stop`
  const stop = () => {
    load.running = false
    return working
  }
  return { stop }
}

test('a backup killed midway under load is made again, and restores all acknowledged mail', async (t) => {
  const stage = await setBackupStage(t)
  const { posthorn, api, secret, folder } = stage
  const [kept, busy] = stage.inboxes
  for (let n = 0; n < 6; n++)
    await receiveMail(stage.posthorn, kept, `<kept-${n}@sender.test>`, n % 2 ? largeBytes : 900)
  const sent = await Promise.all([1, 2, 3].map((n) => send(api, kept, [`r${n}@far.test`])))
  const before = await filedIn(api, kept, 6)

  const load = workOn(stage, busy)
  const isHalfWay = () => countFiles(join(folder, 'tables')) > 20
  assert.ok(await killWhen(['backup', folder], posthorn.env, isHalfWay), 'it was over before its death')
  const unfinished = await verify(folder, posthorn.env)
  assert.deepEqual([unfinished.exitStatus, unfinished.status], [1, 'unfinished'])
  assert.ok(!existsSync(join(folder, 'manifest.json')))
  const env = await emptyPlace(t, posthorn)
  const refused = await command(['restore', folder], env)
  assert.deepEqual([refused.status, refused.stdout], [1, ''])
  assert.match(refused.stderr, /^posthorn: the backup was never finished: [^\n]+\n$/)

  const answer = await posthorn.cli<BackupAnswer>(['backup', folder])
  await load.stop()
  assert.ok(answer.blobs.count >= 3)
  assert.deepEqual(answer.blobs.missing, [])
  const { exitStatus, status, faults } = await verify(folder, posthorn.env)
  assert.deepEqual([exitStatus, status, faults], [0, 'ok', []])
  assert.equal(await posthorn.stop(), 0)

  const restored = await command(['restore', folder], env)
  assert.equal(restored.status, 0, restored.stderr)
  const copy = await startPosthorn(t, { env })
  const copied = new Api(() => copy.http, secret)
  for (const { message, source } of before) {
    assert.deepEqual(await sourceOf(copied, message), source)
    assert.deepEqual(await copied.want(`/v1/messages/${message.id}`), message)
  }
  for (const { submission, message } of sent) {
    const found = await copied.want<Message>(`/v1/messages/${message.id}`)
    assert.equal(found.internetMessageId, message.internetMessageId)
    assert.equal((await copied.call(`/v1/submissions/${submission.id}`)).status, 200)
  }
  // Mail that arrived meanwhile is in the copy whole, or not at all.
  for (const message of await inboundOf(copied, busy))
    assert.ok((await sourceOf(copied, message)).length > 700)
  assert.equal(await copy.stop(), 0)
})

test('a backup of 50 MB needs as much memory as an empty one', async (t) => {
  const posthorn = await startPosthorn(t, { env: passphrase })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const folder = temporaryFolder(t)
  const empty = await peakMemory(['backup', join(folder, 'empty')], posthorn.env)
  // In rows and in blobs.
  for (let n = 0; n < 110; n++) await receiveMail(posthorn, inbox, `<row-${n}@sender.test>`, 180_000)
  for (let n = 0; n < 4; n++) await receiveMail(posthorn, inbox, `<blob-${n}@sender.test>`, 6 << 20)
  await filedIn(api, inbox, 114)
  const full = await peakMemory(['backup', join(folder, 'full')], posthorn.env)
  t.diagnostic(`peak memory of an empty backup ${empty.toFixed(0)} MiB, of a full one ${full.toFixed(0)} MiB`)
  assert.ok(full - empty < 40, `${empty} and ${full} MiB`)
  const env = await emptyPlace(t, posthorn)
  const restored = await peakMemory(['restore', join(folder, 'full')], env)
  t.diagnostic(`peak memory of a restore ${restored.toFixed(0)} MiB`)
  assert.ok(restored - empty < 60, `${empty} and ${restored} MiB`)
  assert.equal(await posthorn.stop(), 0)
})

test('during a backup blobs stay, the sweep pauses, and no other backup begins', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx', 'jobs'] })
  const { api } = await node.createCaller()
  const { db, blobs, clock, log } = node.foundation
  const inbox = await api.createInbox()
  const raw = heavyMail(inbox.address, '<large@sender.test>', largeBytes)
  await sendMail(node.smtp, { from: 's@sender.test', to: inbox.address, raw })
  const [filed] = await filedIn(api, inbox, 1)
  const [row] = await db.query<{ blob: string }>('select blob from raw where blob is not null')
  const { blob } = row!

  const lock = (await lockBackup(db))!
  assert.equal(await lockBackup(db), null)
  assert.equal((await api.call(`/v1/messages/${filed!.message.id}`, { method: 'DELETE' })).status, 204)
  assert.deepEqual(await db.query('select from raw where blob is not null'), [])
  assert.ok(await blobs.has(blob))
  clock.advance(72 * 3_600_000)
  const sweeper = new BlobSweeper({ db, clock, log, blobs })
  const sweepAll = async () => {
    for (let part = 0; part < 256; part++) while (await sweeper.sweepNext(500));
  }
  await sweepAll()
  assert.ok(await blobs.has(blob), 'the sweep took it while the backup was under way')
  assert.ok(await lock.isHeld())
  lock.release()
  await until('the lock to be gone', async () => !(await isBackupUnderWay(db)))
  await sweepAll()
  assert.ok(!(await blobs.has(blob)))
})

test('no schema is migrated during a backup', async (t) => {
  const migrations = listPending([])
  const db = new Db({ connection: await emptyDatabase(t) })
  t.after(() => db.close())
  await db.longTransaction('begin', async (_, client) => {
    await lockSchema(client)
    await repeatMigrations(client, migrations.slice(0, -1))
  })
  const lock = (await lockBackup(db))!
  await assert.rejects(migrate(db, silentLog), /a backup is running/)
  lock.release()
  await until('the lock to be gone', async () => !(await isBackupUnderWay(db)))
  assert.deepEqual(await migrate(db, silentLog), [migrations.at(-1)!.name])
})

test('a backup has every table, except those left out for a reason', async (t) => {
  const db = new Db({ connection: await testDatabase(t) })
  t.after(() => db.close())
  const kinds = await db.query<{ name: string; kind: string }>(
    `select relname::text as name, relkind::text as kind from pg_class where relnamespace = current_schema()::regnamespace
      and relkind in ('r', 'p', 'm', 'f')`,
  )
  // Backups do not support relations of other kinds: partitions, materialized views and foreign tables.
  assert.deepEqual(
    kinds.filter(({ kind }) => kind !== 'r'),
    [],
  )
  const copied = (await listTables(db)).map(({ name }) => name)
  assert.deepEqual(copied, kinds.map(({ name }) => name).sort())
  for (const [name, reason] of Object.entries(leftOut)) assert.ok(copied.includes(name) && reason, name)
  const generated = (await listTables(db)).find(({ name }) => name === 'kept_mail')!
  assert.ok(generated.columns.includes('retry_at') && !generated.columns.includes('turn'))
})
