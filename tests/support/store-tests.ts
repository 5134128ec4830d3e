// The promises that every store of blobs keeps, as tests of one kind of store.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newUuid } from '../../src/base/ids.ts'
import { type Blobs, NotOurStore } from '../../src/blobs/blobs.ts'
import { type BlobStore, openBlobs } from '../../src/blobs/open-blobs.ts'
import { readSettings } from '../../src/config/settings.ts'

export const scratchFolder = mkdtempSync(join(tmpdir(), 'posthorn-scratch-'))
after(() => rmSync(scratchFolder, { recursive: true }))

export async function readAll(blobs: Blobs, key: string): Promise<Buffer> {
  return Buffer.concat(await blobs.read(key).toArray())
}

export async function* inPieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

type Env = Record<string, string>

function storeOf(url: string, env: Env): BlobStore {
  return readSettings({ POSTHORN_BLOB_URL: url, ...env }).blobStore
}

/** Returns the store, which belongs to the database from now on. */
export async function makeStore(url: string, env: Env = {}, databaseId = newUuid()): Promise<Blobs> {
  const store = storeOf(url, env)
  await (await openBlobs({ store, scratchFolder, databaseId: null })).claim(databaseId)
  return await openBlobs({ store, scratchFolder, databaseId })
}

/** Adds the tests. `makeUrl` returns the `POSTHORN_BLOB_URL` of a new store, and `env` has its credentials. */
export function testStore(kind: string, makeUrl: () => string, env: Env = {}): void {
  test(`a blob in a ${kind} is read as it was written: whole, in ranges and as a file`, async () => {
    const blobs = await makeStore(makeUrl(), env)
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
    const blobs = await makeStore(makeUrl(), env)
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
    const blobs = await makeStore(makeUrl(), env)
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
    const blobs = await makeStore(makeUrl(), env)
    const key = newUuid()
    const writer = await blobs.create(key)
    await writer.write(randomBytes(300_000))
    await writer.abort()
    assert.deepEqual(await blobs.list(Number.parseInt(key.slice(-2), 16)), [])
  })

  test(`a ${kind} without our mark, or with another one, takes no blob`, async () => {
    const [id, key] = [newUuid(), newUuid()]
    const store = storeOf(makeUrl(), env)
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
    const blobs = await makeStore(makeUrl(), env)
    assert.equal(await blobs.readNodeMark(7), null)
    await blobs.writeNodeMark(7, 'one\ntwo')
    assert.equal(await blobs.readNodeMark(7), 'one\ntwo')
  })

  test(`a blob whose ${kind} was moved away during its upload is not stored`, async () => {
    const store = storeOf(makeUrl(), env)
    const id = newUuid()
    const any = await openBlobs({ store, scratchFolder, databaseId: null })
    await any.claim(id)
    const blobs = await openBlobs({ store, scratchFolder, databaseId: id })
    const writer = await blobs.create(newUuid())
    await writer.write(Buffer.from('x'))
    await any.disown()
    await assert.rejects(writer.commit(), NotOurStore)
    await writer.abort()
  })
}
