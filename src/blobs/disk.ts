// Blobs in a folder: one file per blob, flushed and renamed before it is reported as stored.
import { createReadStream } from 'node:fs'
import { link, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { syncFolder } from '../base/sync-folder.ts'
import { type Blobs, type BlobWriter, NotOurStore, type StoredBlob, writeAll } from './blobs.ts'
import { BufferedWriter } from './buffered-writer.ts'
import { findFolderFault, readMark, removeMark, unfinishedMark, writeMark } from './folder-mark.ts'

/** Each part of the store is a folder. Files are named by their owner, so they need no reference count. */
export class DiskBlobs implements Blobs {
  readonly location: string
  readonly #databaseId: string | null
  /** Folders whose names were flushed to disk, or are being flushed. */
  readonly #flushed = new Map<string, Promise<void>>()

  /** Stores blobs only while the folder has the mark of this database. With null, any mark or none will do. */
  constructor(folder: string, databaseId: string | null = null) {
    this.location = folder
    this.#databaseId = databaseId
  }

  async create(key: string): Promise<BlobWriter> {
    await this.#requireOurs()
    const path = this.#pathOf(key)
    const temporary = `${path}.tmp`
    await this.#makeFolder(dirname(path))
    const file = await open(temporary, 'w', 0o600)
    const buffered = new BufferedWriter(file)
    return {
      write: (chunk) => buffered.write(chunk),
      commit: async () => {
        await buffered.flush()
        await file.sync()
        await file.close()
        await rename(temporary, path)
        await syncFolder(dirname(path))
        // Files written below an empty mount point are hidden once the disk is mounted again.
        await this.#requireOurs(key).catch(async (error) => {
          await rm(path, { force: true })
          throw error
        })
      },
      abort: async () => {
        await file.close().catch(() => {}) // already closed if commit failed half-way
        await rm(temporary, { force: true })
      },
    }
  }

  async put(key: string, bytes: Buffer | AsyncIterable<Buffer>): Promise<void> {
    await writeAll(await this.create(key), Buffer.isBuffer(bytes) ? [bytes] : bytes)
  }

  read(key: string): Readable {
    return createReadStream(this.#pathOf(key))
  }

  async open(key: string, range: { start: number; end: number }): Promise<Readable | null> {
    const file = await open(this.#pathOf(key), 'r').catch(nullWhereMissing)
    return file?.createReadStream(range) ?? null
  }

  async withFile<Found>(key: string, use: (path: string) => Promise<Found>): Promise<Found> {
    return await use(this.#pathOf(key))
  }

  async link(key: string, path: string): Promise<boolean> {
    try {
      await link(this.#pathOf(key), path)
      return true
    } catch (error) {
      // Another file system, or one without links, or one that forbids them for files of others.
      const { code } = error as NodeJS.ErrnoException
      if (['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes(code ?? '')) return false
      throw error
    }
  }

  async has(key: string): Promise<boolean> {
    return (await stat(this.#pathOf(key)).catch(nullWhereMissing)) !== null
  }

  async list(part: number): Promise<StoredBlob[]> {
    const names = await readdir(join(this.location, folderOf(part))).catch(nullWhereMissing)
    return (names ?? []).flatMap((name) => {
      const [, key, ending] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.tmp)?$/.exec(name) ?? []
      return key?.endsWith(folderOf(part)) ? { name, key, isFinished: ending === undefined } : []
    })
  }

  async writtenAtMs({ key, name }: StoredBlob): Promise<number | null> {
    const found = await stat(join(dirname(this.#pathOf(key)), name)).catch(nullWhereMissing)
    return found?.mtimeMs ?? null
  }

  async remove({ key, name }: StoredBlob): Promise<void> {
    await rm(join(dirname(this.#pathOf(key)), name), { force: true })
  }

  async findContent(): Promise<string | null> {
    const names = (await readdir(this.location).catch(nullWhereMissing)) ?? []
    // The file system itself keeps the first entry in the root of a disk. A crash may leave the second.
    return names.find((name) => name !== 'lost+found' && name !== unfinishedMark) ?? null
  }

  async owner(): Promise<string | null> {
    return await readMark(this.location)
  }

  async claim(id: string): Promise<void> {
    await this.#makeFolder(this.location)
    await writeMark(this.location, id)
  }

  async disown(): Promise<void> {
    await removeMark(this.location)
  }

  async findFault(): Promise<string | null> {
    return this.#databaseId === null ? null : await findFolderFault(this.location, this.#databaseId)
  }

  async isThere(): Promise<boolean> {
    return (await this.findFault()) === null
  }

  async delete(key: string): Promise<void> {
    await rm(this.#pathOf(key), { force: true })
  }

  async readNodeMark(folder: number): Promise<string | null> {
    return await readFile(this.#nodeMarkFile(folder), 'utf8').catch(nullWhereMissing)
  }

  async writeNodeMark(folder: number, mark: string): Promise<void> {
    const file = this.#nodeMarkFile(folder)
    await writeFile(`${file}.new`, mark, { mode: 0o600 })
    await rename(`${file}.new`, file)
  }

  #nodeMarkFile(folder: number): string {
    return join(this.location, `node-${folder}`)
  }

  /** Returns the file of a committed blob. */
  #pathOf(key: string): string {
    // UUIDs of version 7 begin with their time. The last characters are random and spread the blobs over the folders.
    return join(this.location, key.slice(-2), key)
  }

  /** Throws if the folder is not ours, or does not contain the blob. */
  async #requireOurs(key?: string): Promise<void> {
    if (this.#databaseId === null) return
    const file = key && join(key.slice(-2), key)
    const fault = await findFolderFault(this.location, this.#databaseId, file)
    if (fault !== null) throw new NotOurStore(fault)
  }

  /** Makes the folder durable, once per process: an earlier process may have died between creating and flushing it. */
  async #makeFolder(path: string): Promise<void> {
    const made = await mkdir(path, { recursive: true, mode: 0o700 })
    if (made !== undefined) this.#flushed.delete(path)
    let flushed = this.#flushed.get(path)
    if (!flushed) {
      flushed = syncAbove(path, made ?? path)
      this.#flushed.set(path, flushed)
      flushed.catch(() => this.#flushed.delete(path))
    }
    await flushed
  }
}

function folderOf(part: number): string {
  return part.toString(16).padStart(2, '0')
}

function nullWhereMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}

/** Flushes the folders above `path`, up to the one that contains `made`, so that the new names are durable. */
async function syncAbove(path: string, made: string): Promise<void> {
  await syncFolder(dirname(path))
  if (path.length > made.length) await syncAbove(dirname(path), made)
}
