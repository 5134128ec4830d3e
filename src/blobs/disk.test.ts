// A committed blob is durable, with all the folders above it, and has the bytes that were written.
import assert from 'node:assert/strict'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newUuid } from '../base/ids.ts'
import { NotOurStore } from './blobs.ts'
import { DiskBlobs } from './disk.ts'
import { findFolderFault } from './folder-mark.ts'
import { OwnMark } from './node-marks.ts'

test('check 93: a new blob folder is flushed by name, once, before the blob appears', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-blobs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const probe = await open(folder, 'r')
  const handles = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  const { sync } = handles
  const flushed: string[] = []
  t.mock.method(handles, 'sync', function (this: FileHandle) {
    flushed.push(readlinkSync(`/proc/self/fd/${this.fd}`))
    return sync.call(this)
  })
  const blobs = new DiskBlobs(join(folder, 'new', 'blobs'))
  const key = newUuid()
  const path = fileOf(blobs, key)
  await blobs.put(key, Buffer.from('first'))
  const above = [join(folder, 'new', 'blobs'), join(folder, 'new'), folder]
  assert.deepEqual(flushed.splice(0), [...above, `${path}.tmp`, join(path, '..')])
  const next = `${key.slice(0, 8)}${newUuid().slice(8, -2)}${key.slice(-2)}`
  await blobs.put(next, Buffer.from('second'))
  assert.deepEqual(flushed, [`${fileOf(blobs, next)}.tmp`, join(path, '..')])
})

test('a blob holds its chunks of any size in order', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-blobs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const blobs = new DiskBlobs(folder)
  const key = newUuid()
  const writer = await blobs.create(key)
  const chunks = [1, 262_143, 262_144, 1_000_000, 0, 7].map((size, index) => Buffer.alloc(size, index + 1))
  for (const chunk of chunks) await writer.write(chunk)
  await writer.commit()
  assert.ok(readFileSync(fileOf(blobs, key)).equals(Buffer.concat(chunks)))
})

test('a folder without our mark accepts neither blobs nor node marks, whenever it was mounted', async (t) => {
  const above = mkdtempSync(join(tmpdir(), 'posthorn-blobs-'))
  t.after(() => rmSync(above, { recursive: true }))
  const folder = join(above, 'blobs')
  mkdirSync(folder)
  const [id, key] = [newUuid(), newUuid()]
  const blobs = new DiskBlobs(folder, id)
  const nodeMark = new OwnMark(blobs, 7)
  const refuses = async () => {
    await assert.rejects(blobs.put(key, Buffer.from('x')), NotOurStore)
    assert.equal(await nodeMark.leave(), null)
    assert.deepEqual(readdirSync(folder), [])
  }
  await refuses()
  await blobs.claim(id)
  await blobs.put(key, Buffer.from('x'))
  assert.notEqual(await nodeMark.leave(), null)
  const file = join(key.slice(-2), key)
  assert.equal(await findFolderFault(folder, id, file), null)
  assert.match((await findFolderFault(folder, id, `${file}0`))!, /was replaced by another folder/)
  const writer = await blobs.create(newUuid())
  await writer.write(Buffer.from('x'))
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
  await assert.rejects(writer.commit())
  await writer.abort()
  await refuses()
  rmSync(folder, { recursive: true })
  assert.match((await findFolderFault(folder, id))!, /cannot be read \(ENOENT\)/)
  renameSync(`${folder}.away`, folder)
  assert.equal(await blobs.findFault(), null)
})

function fileOf({ location }: DiskBlobs, key: string): string {
  return join(location, key.slice(-2), key)
}

test('a folder whose claim was interrupted is empty, and can be claimed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-blobs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'database-id.new'), 'ha')
  const blobs = new DiskBlobs(folder)
  assert.equal(await blobs.findContent(), null)
  await blobs.claim('some id')
  assert.deepEqual([await blobs.findContent(), await blobs.owner()], ['database-id', 'some id'])
})
