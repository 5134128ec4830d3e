// The sweep of the blob store removes old files that no row names, and nothing else. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { checkBlobs } from '../../src/cli/doctor/blobs.ts'
import { fileSpooled } from '../../src/flow/receiving/file.ts'
import { BlobSweeper } from '../../src/flow/upkeep/sweep-blobs.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { readDatabaseId } from '../../src/store/database-identity.ts'
import { joinAsNode } from '../support/claims.ts'
import { makePlace, startNode } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const dayMs = 86_400_000

/** Files no mail and sweeps no blobs by itself. */
const place = await makePlace({ after })
const node = await startNode(place, { roles: ['api', 'mx'] })
const { blobs, clock, db, settings } = node.foundation
const folder = join(place.folder, 'blobs')
const sweeper = new BlobSweeper(node.foundation)
const { api } = await node.createCaller()
const inbox = await api.createInbox()

const countLogged = (words: string) => node.log().split(words).length - 1

const files = () =>
  (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.includes('/')).sort()

// Each test checks the whole store, so it begins with an empty one.
beforeEach(async () => {
  await db.query('delete from spool')
  await db.query('delete from raw')
  for (const name of files()) rmSync(join(folder, name))
})

/** Sweeps the whole store once. */
async function sweepAll(sweeper: BlobSweeper): Promise<void> {
  for (let part = 0; part < 256; part++) while (await sweeper.sweepNext(2));
}

/** Leaves a file as a crash would. Returns its path below the folder. */
function leave(key: string, ending = '', writtenAt = clock.now()): string {
  const name = `${key.slice(-2)}/${key}${ending}`
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), 'left behind')
  utimesSync(join(folder, name), writtenAt, writtenAt)
  return name
}

/** Receives a message that is large enough for a blob. Returns its file. */
async function receiveLarge(to = inbox.address): Promise<string> {
  const before = files()
  const raw = Buffer.from(`Subject: Large\r\n\r\n${'x'.repeat(70).concat('\r\n').repeat(5_000)}`)
  const sent = await sendMail(node.smtp, { from: 'a@far.test', to, raw })
  assert.equal(sent.outcome, 'accepted')
  return files().find((name) => !before.includes(name))!
}

/** Puts an empty folder in its place, like the mount point of an unmounted disk, until `bringBack`. */
async function takeAway(): Promise<void> {
  // The node marks the folder every few seconds. A pending mark would be written to the empty folder.
  const mark = join(folder, readdirSync(folder).find((name) => name.startsWith('node-'))!)
  const before = statSync(mark).mtimeMs
  await until('the folder to be marked', () => statSync(mark).mtimeMs !== before)
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
}

function bringBack(): void {
  rmSync(folder, { recursive: true })
  renameSync(`${folder}.away`, folder)
}

/** A UUID of version 7 that was made at this time, or now. */
function uuidOf(atMs = clock.nowMs()): string {
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}${randomUUID().slice(13).replace(/^-4/, '-7')}`
}

// Runs first: files carry the real time, and the clock is not moved before this test.
test('check 88: the sweep deletes old orphans of each kind, and keeps owned and young blobs', async () => {
  const owned = await receiveLarge()
  const ownedKey = owned.split('/')[1]!
  // The row was deleted by a commit, but the process stopped before it removed the file.
  const forgotten = await receiveLarge()
  await db.query('delete from spool where raw_id = $1', [forgotten.split('/')[1]])
  await db.query('delete from raw where id = $1', [forgotten.split('/')[1]])
  const orphans = [
    forgotten,
    leave(uuidOf()),
    leave(randomUUID()),
    leave(uuidOf(), '.tmp'),
    leave(ownedKey, '.tmp'),
    ...Array.from({ length: 5 }, () => leave(uuidOf().slice(0, -2).concat('ff'))),
  ]
  await sweepAll(sweeper)
  assert.deepEqual(files(), [...new Set([owned, ...orphans])].sort(), 'all of it is young')

  clock.advance(2 * dayMs + 60_000)
  const now = clock.nowMs()
  const kept = [
    owned,
    // An upload that began long ago and continues, or an id that was made a moment ago.
    leave(uuidOf(), '.tmp', new Date(now - dayMs)),
    leave(uuidOf(), '', new Date(now - 1000)),
    leave(uuidOf(now - dayMs)),
    // A file of another program.
    leave('README'),
    leave(uuidOf(), '.bak'),
  ]
  const misplaced = join(folder, 'zz')
  mkdirSync(misplaced)
  writeFileSync(join(misplaced, uuidOf()), '')
  kept.push(...files().filter((name) => name.startsWith('zz/')))
  await sweepAll(sweeper)
  assert.deepEqual(files(), kept.sort())
  assert.equal(countLogged('orphaned blob removed'), orphans.length)
})

test('check 88: two concurrent sweeps, and one that is interrupted, delete no owned blob', async () => {
  const owned = [await receiveLarge(), await receiveLarge()]
  for (let count = 0; count < 300; count++) leave(uuidOf())
  clock.advance(3 * dayMs)
  const ended = new BlobSweeper(node.foundation)
  for (let step = 0; step < 40; step++) await ended.sweepNext(1)
  assert.ok(files().length > owned.length)
  await Promise.all([sweeper, new BlobSweeper(node.foundation)].map(sweepAll))
  assert.deepEqual(files(), owned.sort())
})

test('check 88: a service with another database takes no blob for an orphan', async () => {
  const orphan = leave(uuidOf())
  await sweepAll(sweeper)
  const mark = join(folder, 'database-id')
  const own = readFileSync(mark, 'utf8')
  writeFileSync(mark, uuidOf())
  clock.advance(3 * dayMs)
  await sweepAll(sweeper)
  assert.deepEqual(files(), [orphan])
  await until('it to be told', () => node.log().includes('belongs to another database'))
  writeFileSync(mark, own)
  await sweepAll(sweeper)
  assert.deepEqual(files(), [])
})

test('check 88: a folder without our blobs is never marked as ours, whatever is mounted there later', async () => {
  const blob = await receiveLarge()
  await takeAway()
  // Nor does a database from before this column mark the folder.
  for (const isKnown of [true, false]) {
    await db.query('update database_identity set has_blob_folder = $1', [isKnown])
    await sweepAll(sweeper)
    assert.equal(existsSync(join(folder, 'database-id')), false)
    assert.equal(await blobs.isThere(), false)
  }
  bringBack()
  await sweepAll(sweeper)
  assert.equal(await blobs.isThere(), true)
  assert.deepEqual(files(), [blob])
})

test('check 88: large mail is acknowledged only into its database’s folder, and small mail goes on', async () => {
  const stored = [await receiveLarge()]
  const { host, port } = node.app.listening.operator
  const ask = (path: string) => fetch(`http://${host}:${port}${path}`)
  const untilReady = (status: number) =>
    until(`/readyz to be ${status}`, async () => {
      const response = await ask('/readyz')
      return response.status === status ? ((await response.json()) as { reason?: string }) : null
    })
  const send = (sizeBytes: number) => {
    const content = Buffer.alloc(sizeBytes).toString('base64')
    const attachments = [{ filename: 'x.bin', contentType: 'application/octet-stream', content }]
    const body = { to: [{ email: 'someone@far.test' }], subject: 'T', text: 'T', attachments }
    const path = `/v1/inboxes/${inbox.id}/messages`
    return api.call(path, { method: 'POST', idempotencyKey: randomUUID(), body })
  }
  const receive = async (body: string) => {
    const raw = Buffer.from(`From: a@far.test\r\nMessage-ID: <${randomUUID()}@far.test>\r\n\r\n${body}`)
    return (await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw })).reply
  }
  const large = `${'x'.repeat(70)}\r\n`.repeat(5_000)
  const refuses = async () => {
    assert.match(await receive(large), /^452 4\.3\.0 /)
    assert.equal((await send(300_000)).status, 503)
    assert.equal((await receive('Small.\r\n')).slice(0, 3), '250')
    assert.equal((await send(10)).status, 202)
  }
  const tellings = () => ['the blob store is gone', 'the blob store is back'].map(countLogged)
  await untilReady(200)
  const [goneBefore, backBefore] = tellings()

  // Like the mount point of an unmounted disk: refused at once, before any sweep has checked it.
  await takeAway()
  await refuses()
  assert.match((await untilReady(503)).reason!, /has no database-id/)
  assert.match(await (await ask('/metrics')).text(), /^posthorn_blob_folder_ok 0$/m)
  const { status, detail, mend } = await checkBlobs(blobs, db, settings)
  assert.deepEqual([status, /has no database-id/.test(detail)], ['failed', true])
  assert.ok(mend?.includes(`write ${await readDatabaseId(db)} into ${folder}/database-id`))
  assert.deepEqual(readdirSync(folder), [])

  // The folder of another database.
  writeFileSync(join(folder, 'database-id'), uuidOf())
  await refuses()
  assert.deepEqual(readdirSync(folder), ['database-id'])

  bringBack()
  stored.push(await receiveLarge())
  assert.equal((await send(300_000)).status, 202)
  await untilReady(200)
  assert.deepEqual(tellings(), [goneBefore! + 1, backBefore! + 1], 'told once')
  const rows = await db.query<{ blob: string }>('select blob from raw where blob is not null')
  assert.deepEqual(rows.map(({ blob }) => `${blob.slice(-2)}/${blob}`).sort(), files())
  assert.equal(rows.length, stored.length + 1)
})

test('check 88: a blob is 503 while its folder is away, a named error if lost, and 404 once deleted', async (t) => {
  const inbox = await api.createInbox()
  const blob = await receiveLarge(inbox.address)
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => parsePool.close())
  const { claims } = await joinAsNode(t, node.foundation)
  while (await fileSpooled({ ...node.foundation, parsePool, claims: claims('mail') }, 64));
  const [message] = await api.exported(inbox.id)
  const path = `/v1/messages/${message!.id}/source`
  // Like an unmounted disk.
  renameSync(folder, `${folder}.away`)
  const away = await api.call(path)
  assert.deepEqual([away.status, away.body.error], [503, 'unavailable'])
  renameSync(`${folder}.away`, folder)
  rmSync(join(folder, blob))
  const broken = await api.call(path)
  assert.deepEqual([broken.status, broken.body.error], [500, 'internal_error'])
  assert.match(node.log(), new RegExp(`the blob ${blob.split('/')[1]} is not in the store`))
  await db.query('delete from raw')
  const gone = await api.call(path)
  assert.deepEqual([gone.status, gone.body.error], [404, 'not_found'])
})

test('check 88: the doctor names the blobs that rows reference and the store lacks', async () => {
  const [kept, lost] = [await receiveLarge(), await receiveLarge()]
  assert.equal((await checkBlobs(blobs, db, settings)).status, 'ok')
  rmSync(join(folder, lost))
  const { status, detail } = await checkBlobs(blobs, db, settings)
  assert.equal(status, 'failed')
  assert.ok(detail.includes(lost.split('/')[1]!) && !detail.includes(kept.split('/')[1]!), detail)
})

test('check 88: the sweep names and counts the blobs that rows reference and the store lacks', async () => {
  const [kept, lost] = [await receiveLarge(), await receiveLarge()]
  const bytes = readFileSync(join(folder, lost))
  rmSync(join(folder, lost))
  const before = node.log().length
  await sweepAll(sweeper)
  const lines = node
    .log()
    .slice(before)
    .split('\n')
    .filter((line) => line.includes('large messages are lost'))
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).blobs),
    [[lost.split('/')[1]]],
  )
  assert.ok(!lines[0]!.includes(kept.split('/')[1]!))
  assert.equal(await countLost(), 1)
  writeFileSync(join(folder, lost), bytes)
  await sweepAll(sweeper)
  assert.equal(await countLost(), 0)
})

/** The metric of lost blobs. */
async function countLost(): Promise<number> {
  const { host, port } = node.app.listening.operator
  const metrics = await (await fetch(`http://${host}:${port}/metrics`)).text()
  return Number(/^posthorn_blobs_lost (\d+)$/m.exec(metrics)![1])
}
