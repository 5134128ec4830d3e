// Both stores of blobs, a folder and S3, keep the same promises; and S3 keeps them while it fails.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { newUuid } from '../../src/base/ids.ts'
import { type Blobs, NoBlob, NotOurStore } from '../../src/blobs/blobs.ts'
import { type BlobStore, openBlobs } from '../../src/blobs/open-blobs.ts'
import { CredentialSource } from '../../src/blobs/s3/credentials.ts'
import { S3Blobs } from '../../src/blobs/s3/s3-blobs.ts'
import { S3Client } from '../../src/blobs/s3/s3-client.ts'
import { readSettings } from '../../src/config/settings.ts'
import { startS3 } from '../support/s3.ts'
import { inPieces, makeStore, readAll, scratchFolder, testStore } from '../support/store-tests.ts'

const s3 = await startS3({ after })
const folder = mkdtempSync(join(tmpdir(), 'posthorn-stores-'))
after(() => rmSync(folder, { recursive: true }))
beforeEach(() => s3.heal())

const storeOf = (url: string): BlobStore => readSettings({ POSTHORN_BLOB_URL: url, ...s3.env }).blobStore

const makeOnS3 = () => makeStore(s3.makeUrl(), s3.env)

/** A store on S3 that gives up soon. */
async function makeImpatient(): Promise<Blobs> {
  const databaseId = newUuid()
  const store = storeOf(s3.makeUrl())
  assert.ok('s3' in store)
  const client = new S3Client({
    address: store.s3,
    credentials: new CredentialSource(store.credentials),
    patienceMs: 1_500,
    idleMs: 1_000,
  })
  const blobs = new S3Blobs({ client, scratchFolder, databaseId })
  await blobs.claim(databaseId)
  return blobs
}

testStore('folder', () => `file:${join(folder, newUuid())}`)
testStore('S3', s3.makeUrl, s3.env)

test('a mark on S3 is read at once while it is replaced: the server of the tests replaces whole objects, as S3 does', async () => {
  const blobs = await makeOnS3()
  const marks = ['a'.repeat(36), 'b'.repeat(73)]
  await blobs.writeNodeMark(1, marks[0]!)
  const before = s3.calls.length
  const write = async () => {
    for (let turn = 0; turn < 50; turn++) await blobs.writeNodeMark(1, marks[turn % 2]!)
  }
  const read = async () => {
    for (let turn = 0; turn < 50; turn++) assert.ok(marks.includes((await blobs.readNodeMark(1))!))
  }
  await Promise.all([write(), read(), read()])
  assert.equal(s3.calls.length - before, 150)
})

test('a large blob goes to S3 in parts, and needs no more memory than one buffer', async () => {
  const blobs = await makeOnS3()
  const [whole, parts] = [randomBytes(16 << 20), randomBytes((32 << 20) + 5)]
  const before = s3.calls.length
  const [key, other] = [newUuid(), newUuid()]
  await blobs.put(key, inPieces(whole, 1 << 20))
  assert.equal(
    s3.calls.slice(before).some((call) => call.includes('uploadId')),
    false,
  )
  await blobs.put(other, inPieces(parts, 999_999))
  assert.equal(s3.calls.slice(before).filter((call) => /^PUT .*partNumber/.test(call)).length, 3)
  assert.ok((await readAll(blobs, key)).equals(whole))
  assert.ok((await readAll(blobs, other)).equals(parts))
  assert.equal(s3.uploads.size, 0)
  assert.deepEqual(readdirSync(scratchFolder), [])
})

test('an upload in parts that is given up is aborted at once, or else by the sweep', async () => {
  const blobs = await makeOnS3()
  const key = newUuid()
  const writer = await blobs.create(key)
  await writer.write(randomBytes((16 << 20) + 1))
  assert.equal(s3.uploads.size, 1)
  await writer.abort()
  assert.equal(s3.uploads.size, 0)
  const killed = await blobs.create(key)
  await killed.write(randomBytes((16 << 20) + 1))
  const [left] = await blobs.list(Number.parseInt(key.slice(-2), 16))
  assert.deepEqual([left!.key, left!.isFinished], [key, false])
  assert.ok(Math.abs((await blobs.writtenAtMs(left!))! - Date.now()) < 60_000)
  await blobs.remove(left!)
  assert.deepEqual([s3.uploads.size, await blobs.writtenAtMs(left!)], [0, null])
  await killed.abort()
})

test('S3 that fails every third call, cuts connections and changes bytes loses nothing', async () => {
  // The question whose store it is gives up sooner than an upload, so on a busy machine it could fail here.
  const blobs = await openBlobs({ store: storeOf(s3.makeUrl()), scratchFolder, databaseId: null })
  const bytes = randomBytes((16 << 20) + 100_000)
  Object.assign(s3.faults, { failEvery: 3, cutUploads: 2, changeUploads: 2, cutAnswers: 3 })
  const [small, large] = [newUuid(), newUuid()]
  await blobs.put(large, inPieces(bytes, 1 << 20))
  await blobs.put(small, bytes.subarray(0, 300_000))
  assert.ok((await readAll(blobs, large)).equals(bytes))
  assert.ok((await readAll(blobs, small)).equals(bytes.subarray(0, 300_000)))
  const range = await blobs.open(large, { start: 5, end: 16_000_000 })
  assert.ok(Buffer.concat(await range!.toArray()).equals(bytes.subarray(5, 16_000_001)))
  assert.deepEqual([s3.faults.cutUploads, s3.faults.changeUploads, s3.faults.cutAnswers], [0, 0, 0])
})

test('S3 that does not answer in time is given up, and mail is refused', async () => {
  const blobs = await makeImpatient()
  s3.faults.delayMs = 5_000
  await assert.rejects(blobs.put(newUuid(), Buffer.from('x')), NotOurStore)
  await assert.rejects(readAll(blobs, newUuid()), NotOurStore)
  assert.match((await blobs.findFault())!, /does not answer/)
  s3.heal()
  assert.equal(await blobs.findFault(), null)
})

test('S3 that loses an object which it acknowledged is noticed before the mail is accepted', async () => {
  const blobs = await makeOnS3()
  const key = newUuid()
  s3.faults.lose = new RegExp(key)
  await assert.rejects(blobs.put(key, Buffer.from('x')), /acknowledged .*, but does not have it/)
})

test('a reader that ends early frees its connection', async () => {
  const blobs = await makeOnS3()
  const key = newUuid()
  await blobs.put(key, randomBytes(1 << 20))
  for (let count = 0; count < 70; count++) {
    const stream = (await blobs.open(key, { start: 0, end: (1 << 20) - 1 }))!
    if (count % 2) await stream.take(1).toArray()
    stream.destroy()
  }
  assert.ok(await blobs.has(key))
})

test('S3 that refuses the credentials is named, with the remedy', async () => {
  const store = storeOf(s3.makeUrl())
  assert.ok('s3' in store)
  const credentials = { ...store.credentials, accessKeyId: 'unknown' }
  const blobs = await openBlobs({ store: { ...store, credentials }, scratchFolder, databaseId: newUuid() })
  const startedMs = performance.now()
  assert.match(
    (await blobs.findFault())!,
    /answered 403 InvalidAccessKeyId: it does not know these credentials/,
  )
  assert.ok(performance.now() - startedMs < 10_000)
  assert.equal(new NoBlob('x', 'y').code, 'ENOENT')
})
