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
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newUuid } from '../../src/base/ids.ts'
import { checkBlobs } from '../../src/cli/doctor/checks.ts'
import { BlobSweeper } from '../../src/flow/upkeep/sweep-blobs.ts'
import { readDatabaseId } from '../../src/store/database-identity.ts'
import type { Api } from '../support/api.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

interface Stage {
  node: TestNode
  api: Api
  folder: string
  sweeper: BlobSweeper
}

const dayMs = 86_400_000

async function setStage(t: TestContext): Promise<Stage> {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const folder = join(place.folder, 'blobs')
  return { node, api, folder, sweeper: new BlobSweeper(node.foundation) }
}

const files = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.includes('/')).sort()

/** Once round the whole store. */
async function sweepAll(sweeper: BlobSweeper): Promise<void> {
  for (let part = 0; part < 256; part++) while (await sweeper.sweepNext(2));
}

/** A file as a crash would leave it; answers its path below the folder. */
function leave(folder: string, key: string, ending = '', writtenAt = new Date()): string {
  const name = `${key.slice(-2)}/${key}${ending}`
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), 'left behind')
  utimesSync(join(folder, name), writtenAt, writtenAt)
  return name
}

/** Receives a message that is large enough for a blob; answers its file. */
async function receiveLarge({ node, folder }: Stage, address: string): Promise<string> {
  const before = files(folder)
  const raw = Buffer.from(`Subject: Large\r\n\r\n${'x'.repeat(70).concat('\r\n').repeat(5_000)}`)
  const sent = await sendMail(node.smtp, { from: 'a@far.test', to: address, raw })
  assert.equal(sent.outcome, 'accepted')
  return files(folder).find((name) => !before.includes(name))!
}

/** A UUID of version 7 that was made at this time. */
function uuidOf(atMs: number): string {
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}${randomUUID().slice(13).replace(/^-4/, '-7')}`
}

test('check 88: orphans of each kind go, what has an owner stays, and so does what is young', async (t) => {
  const stage = await setStage(t)
  const { node, api, folder, sweeper } = stage
  const { clock, db } = node.foundation
  const { address } = await api.createInbox('large')
  const owned = await receiveLarge(stage, address)
  const ownedKey = owned.split('/')[1]!
  // The row went in a commit, and the process before it removed the file.
  const forgotten = await receiveLarge(stage, address)
  await db.query('delete from spool where raw_id = $1', [forgotten.split('/')[1]])
  await db.query('delete from raw where id = $1', [forgotten.split('/')[1]])
  const orphans = [
    forgotten,
    leave(folder, newUuid()),
    leave(folder, randomUUID()),
    leave(folder, newUuid(), '.tmp'),
    leave(folder, ownedKey, '.tmp'),
    ...Array.from({ length: 5 }, () => leave(folder, newUuid().slice(0, -2).concat('ff'))),
  ]
  await sweepAll(sweeper)
  assert.deepEqual(files(folder), [...new Set([owned, ...orphans])].sort(), 'all of it is young')

  clock.advance(2 * dayMs + 60_000)
  const now = clock.nowMs()
  const kept = [
    owned,
    // Its upload began long ago and goes on, or its id says that it was made a moment ago.
    leave(folder, newUuid(), '.tmp', new Date(now - dayMs)),
    leave(folder, newUuid(), '', new Date(now - 1000)),
    leave(folder, uuidOf(now - dayMs)),
    // Not ours.
    leave(folder, 'README'),
    leave(folder, newUuid(), '.bak'),
  ]
  const misplaced = join(folder, 'zz')
  mkdirSync(misplaced)
  writeFileSync(join(misplaced, newUuid()), '')
  kept.push(...files(folder).filter((name) => name.startsWith('zz/')))
  await sweepAll(sweeper)
  assert.deepEqual(files(folder), kept.sort())
  assert.equal(node.log().split('a blob that belongs to nothing was removed').length - 1, orphans.length)
})

test('check 88: two that sweep at once, and one that ends on the way, harm nothing', async (t) => {
  const stage = await setStage(t)
  const { node, api, folder } = stage
  const { address } = await api.createInbox('large')
  const owned = [await receiveLarge(stage, address), await receiveLarge(stage, address)]
  for (let count = 0; count < 300; count++) leave(folder, newUuid())
  node.foundation.clock.advance(3 * dayMs)
  const ended = new BlobSweeper(node.foundation)
  for (let step = 0; step < 40; step++) await ended.sweepNext(1)
  assert.ok(files(folder).length > owned.length)
  await Promise.all([stage.sweeper, new BlobSweeper(node.foundation)].map(sweepAll))
  assert.deepEqual(files(folder), owned.sort())
})

test('check 88: a service over another database takes no blob for an orphan', async (t) => {
  const stage = await setStage(t)
  const { node, folder, sweeper } = stage
  const orphan = leave(folder, newUuid())
  await sweepAll(sweeper)
  const mark = join(folder, 'database-id')
  const own = readFileSync(mark, 'utf8')
  writeFileSync(mark, newUuid())
  node.foundation.clock.advance(3 * dayMs)
  await sweepAll(sweeper)
  assert.deepEqual(files(folder), [orphan])
  await until('it to be told', () => node.log().includes('belongs to another database'))
  writeFileSync(mark, own)
  await sweepAll(sweeper)
  assert.deepEqual(files(folder), [])
})

test('check 88: a folder without any of our blobs is not taken for ours, whatever is mounted there later', async (t) => {
  const stage = await setStage(t)
  const { node, api, folder, sweeper } = stage
  const inbox = await api.createInbox('large')
  const blob = await receiveLarge(stage, inbox.address)
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
  // Nor by a database from before it remembered that it has marked one.
  for (const isKnown of [true, false]) {
    await node.foundation.db.query('update database_identity set has_blob_folder = $1', [isKnown])
    await sweepAll(sweeper)
    assert.equal(existsSync(join(folder, 'database-id')), false)
    assert.equal(await node.foundation.blobs.isThere(), false)
  }
  rmSync(folder, { recursive: true })
  renameSync(`${folder}.away`, folder)
  await sweepAll(sweeper)
  assert.equal(await node.foundation.blobs.isThere(), true)
  assert.deepEqual(files(folder), [blob])
})

test('check 88: large mail is acknowledged only into the folder of its database, and small mail goes on', async (t) => {
  const stage = await setStage(t)
  const { node, api, folder } = stage
  const { id, address } = await api.createInbox('large')
  const stored = [await receiveLarge(stage, address)]
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
    const path = `/v1/inboxes/${id}/messages`
    return api.call(path, { method: 'POST', idempotencyKey: randomUUID(), body })
  }
  const receive = async (body: string) => {
    const raw = Buffer.from(`From: a@far.test\r\nMessage-ID: <${randomUUID()}@far.test>\r\n\r\n${body}`)
    return (await sendMail(node.smtp, { from: 'a@far.test', to: address, raw })).reply
  }
  const large = `${'x'.repeat(70)}\r\n`.repeat(5_000)
  const refuses = async () => {
    assert.match(await receive(large), /^452 4\.3\.0 /)
    assert.equal((await send(300_000)).status, 503)
    assert.equal((await receive('Small.\r\n')).slice(0, 3), '250')
    assert.equal((await send(10)).status, 202)
  }
  const tellings = (words: string) => node.log().split(words).length - 1

  // As below the mount point of a disk that is gone: refused at once, before anybody has looked.
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
  await refuses()
  assert.match((await untilReady(503)).reason!, /has no database-id/)
  assert.match(await (await ask('/metrics')).text(), /^posthorn_blob_folder_ok 0$/m)
  const { blobs, db, settings } = node.foundation
  const { status, detail, mend } = await checkBlobs(blobs, db, settings)
  assert.deepEqual([status, /has no database-id/.test(detail)], ['failed', true])
  assert.ok(mend?.includes(`write ${await readDatabaseId(db)} into ${folder}/database-id`))
  assert.deepEqual(readdirSync(folder), [])

  // Another's folder.
  writeFileSync(join(folder, 'database-id'), newUuid())
  await refuses()
  assert.deepEqual(readdirSync(folder), ['database-id'])

  rmSync(folder, { recursive: true })
  renameSync(`${folder}.away`, folder)
  stored.push(await receiveLarge(stage, address))
  assert.equal((await send(300_000)).status, 202)
  await untilReady(200)
  assert.deepEqual(
    [tellings('the blob folder is gone'), tellings('the blob folder is back')],
    [1, 1],
    'told once',
  )
  const rows = await db.query<{ blob: string }>('select blob from raw where blob is not null')
  assert.deepEqual(rows.map(({ blob }) => `${blob.slice(-2)}/${blob}`).sort(), files(folder))
  assert.equal(rows.length, stored.length + 1)
})

test('check 88: a blob is 503 while its folder is away, an error that names it if it is lost, and 404 once deleted', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place)
  const { api } = await node.createCaller()
  const folder = join(place.folder, 'blobs')
  const inbox = await api.createInbox('large')
  const blob = await receiveLarge(
    { node, api, folder, sweeper: new BlobSweeper(node.foundation) },
    inbox.address,
  )
  const message = await until('the message', async () => (await api.exported(inbox.id))[0])
  const path = `/v1/messages/${message.id}/source`
  // As while its disk is not mounted.
  renameSync(folder, `${folder}.away`)
  const away = await api.call(path)
  assert.deepEqual([away.status, away.body.error], [503, 'unavailable'])
  renameSync(`${folder}.away`, folder)
  rmSync(join(folder, blob))
  const broken = await api.call(path)
  assert.deepEqual([broken.status, broken.body.error], [500, 'internal_error'])
  assert.match(node.log(), new RegExp(`the blob ${blob.split('/')[1]} is not in the store`))
  await node.foundation.db.query('delete from raw')
  const gone = await api.call(path)
  assert.deepEqual([gone.status, gone.body.error], [404, 'not_found'])
})

test('check 88: the doctor names the blobs that rows name and the store has not', async (t) => {
  const stage = await setStage(t)
  const { node, api, folder } = stage
  const { blobs, db, settings } = node.foundation
  const { address } = await api.createInbox('large')
  const [kept, lost] = [await receiveLarge(stage, address), await receiveLarge(stage, address)]
  assert.equal((await checkBlobs(blobs, db, settings)).status, 'ok')
  rmSync(join(folder, lost))
  const { status, detail } = await checkBlobs(blobs, db, settings)
  assert.equal(status, 'failed')
  assert.ok(detail.includes(lost.split('/')[1]!) && !detail.includes(kept.split('/')[1]!), detail)
})
