// Both stores of blobs, a folder and S3, keep the same promises; and S3 keeps them while it fails.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
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

const s3 = await startS3({ after })
const folder = mkdtempSync(join(tmpdir(), 'posthorn-stores-'))
const scratchFolder = join(folder, 'scratch')
after(() => rmSync(folder, { recursive: true }))
beforeEach(() => s3.heal())

const urlOf = { folder: () => `file:${join(folder, newUuid())}`, S3: () => s3.makeUrl() }
const storeOf = (url: string): BlobStore => readSettings({ POSTHORN_BLOB_URL: url, ...s3.env }).blobStore

/** A new store that belongs to the database. */
async function makeStore(kind: keyof typeof urlOf, databaseId = newUuid()): Promise<Blobs> {
  const store = storeOf(urlOf[kind]())
  await (await openBlobs({ store, scratchFolder, databaseId: null })).claim(databaseId)
  return await openBlobs({ store, scratchFolder, databaseId })
}

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

async function readAll(blobs: Blobs, key: string): Promise<Buffer> {
  return Buffer.concat(await blobs.read(key).toArray())
}

async function* inPieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

for (const kind of ['folder', 'S3'] as const) {
  test(`a blob in a ${kind} is read as it was written: whole, in ranges and as a file`, async () => {
    const blobs = await makeStore(kind)
    const bytes = randomBytes(700_001)
    const [small, streamed] = [newUuid(), newUuid()]
    await blobs.put(small, bytes)
    await blobs.put(streamed, inPieces(bytes, 100_000))
    for (const key of [small, streamed]) {
      assert.ok((await readAll(blobs, key)).equals(bytes))
      for (const [start, end] of [
        [0, 9],
        [1, 600_000],
        [699_999, 700_000],
      ] as const) {
        const range = await blobs.open(key, { start, end })
        assert.ok(Buffer.concat(await range!.toArray()).equals(bytes.subarray(start, end + 1)))
      }
      await blobs.withFile(key, async (path) => assert.ok(readFileSync(path).equals(bytes)))
    }
  })

  test(`a missing blob in a ${kind} is missing for each way to read it`, async () => {
    const blobs = await makeStore(kind)
    const key = newUuid()
    const isMissing = (error: NodeJS.ErrnoException) => error.code === 'ENOENT'
    assert.equal(await blobs.has(key), false)
    assert.equal(await blobs.open(key, { start: 0, end: 1 }), null)
    await assert.rejects(readAll(blobs, key), isMissing)
    await assert.rejects(
      blobs.withFile(key, async (path) => readFileSync(path)),
      isMissing,
    )
    await blobs.delete(key)
    await blobs.put(key, Buffer.from('x'))
    assert.equal(await blobs.has(key), true)
    await blobs.delete(key)
    assert.equal(await blobs.has(key), false)
  })

  test(`a ${kind} lists the blobs of a part, and when they were written`, async () => {
    const blobs = await makeStore(kind)
    const key = newUuid()
    const part = Number.parseInt(key.slice(-2), 16)
    assert.deepEqual(await blobs.list(part), [])
    await blobs.put(key, Buffer.from('x'))
    const [found, ...others] = await blobs.list(part)
    assert.deepEqual([found, others], [{ name: key, key, isFinished: true }, []])
    assert.deepEqual(await blobs.list((part + 1) % 256), [])
    assert.ok(Math.abs((await blobs.writtenAtMs(found!))! - Date.now()) < 60_000)
    await blobs.remove(found!)
    assert.deepEqual([await blobs.list(part), await blobs.writtenAtMs(found!)], [[], null])
  })

  test(`an aborted blob leaves nothing in a ${kind}`, async () => {
    const blobs = await makeStore(kind)
    const key = newUuid()
    const writer = await blobs.create(key)
    await writer.write(randomBytes(300_000))
    await writer.abort()
    assert.deepEqual(await blobs.list(Number.parseInt(key.slice(-2), 16)), [])
  })

  test(`a ${kind} without our mark, or with another one, takes no blob`, async () => {
    const [id, key] = [newUuid(), newUuid()]
    const store = storeOf(urlOf[kind]())
    const ours = await openBlobs({ store, scratchFolder, databaseId: id })
    const any = await openBlobs({ store, scratchFolder, databaseId: null })
    assert.equal(await any.owner(), null)
    assert.equal(await any.findContent(), null)
    await assert.rejects(ours.put(key, Buffer.from('x')), NotOurStore)
    assert.equal(await ours.isThere(), false)
    await ours.claim(newUuid())
    assert.match((await ours.findFault())!, /belongs to another database/)
    await assert.rejects(ours.create(key), NotOurStore)
    await ours.claim(id)
    assert.deepEqual([await ours.owner(), await ours.findFault()], [id, null])
    await ours.put(key, Buffer.from('x'))
    assert.notEqual(await any.findContent(), null)
  })

  test(`a ${kind} keeps the marks of nodes`, async () => {
    const blobs = await makeStore(kind)
    assert.equal(await blobs.readNodeMark(7), null)
    await blobs.writeNodeMark(7, 'one\ntwo')
    assert.equal(await blobs.readNodeMark(7), 'one\ntwo')
  })
}

test('a large blob goes to S3 in parts, and needs no more memory than one buffer', async () => {
  const blobs = await makeStore('S3')
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
  const blobs = await makeStore('S3')
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
  const blobs = await makeStore('S3')
  const key = newUuid()
  s3.faults.lose = new RegExp(key)
  await assert.rejects(blobs.put(key, Buffer.from('x')), /acknowledged .*, but does not have it/)
})

test('a reader that ends early frees its connection', async () => {
  const blobs = await makeStore('S3')
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
