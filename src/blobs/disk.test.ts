// A blob that is committed is on the disk with all the folders above it, and is what was written.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newUuid } from '../base/ids.ts'
import { DiskBlobs } from './disk.ts'

test('check 93: a folder that a blob makes is flushed by name, once, before the blob is there', async (t) => {
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
  const path = blobs.pathOf(key)
  await blobs.put(key, Buffer.from('first'))
  const above = [join(folder, 'new', 'blobs'), join(folder, 'new'), folder]
  assert.deepEqual(flushed.splice(0), [...above, `${path}.tmp`, join(path, '..')])
  const next = `${key.slice(0, 8)}${newUuid().slice(8, -2)}${key.slice(-2)}`
  await blobs.put(next, Buffer.from('second'))
  assert.deepEqual(flushed, [`${blobs.pathOf(next)}.tmp`, join(path, '..')])
})

test('chunks of any size are the blob', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-blobs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const blobs = new DiskBlobs(folder)
  const key = newUuid()
  const writer = await blobs.create(key)
  const chunks = [1, 262_143, 262_144, 1_000_000, 0, 7].map((size, index) => Buffer.alloc(size, index + 1))
  for (const chunk of chunks) await writer.write(chunk)
  await writer.commit()
  assert.ok(readFileSync(blobs.pathOf(key)).equals(Buffer.concat(chunks)))
})
