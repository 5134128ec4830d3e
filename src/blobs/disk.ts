// Large bytes on disk: a file a blob, flushed and renamed before anybody is told that it is there.
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { syncFolder } from '../base/sync-folder.ts'
import { findFolderFault, NotOurFolder, readMark, writeMark } from './folder-mark.ts'

/** Takes chunks one after the other; nothing can be read before `commit` resolves. */
export interface BlobWriter {
  write(chunk: Buffer): Promise<void>
  /** Flushes to the disk and makes the blob visible under its key. Throws `NotOurFolder`, and leaves no blob. */
  commit(): Promise<void>
  abort(): Promise<void>
}

/** A file of the store: a blob under its key, or what is left of one that was never finished. */
export interface StoredFile {
  name: string
  key: string
  isFinished: boolean
}

/** Blobs are spread over as many folders. */
export const partCount = 256
const bufferedBytes = 256 * 1024

/**
 * Blobs in a folder. A blob has exactly one owner, the raw row whose id is its key, so deleting needs no counting;
 * that is why files are named by owner and not by content.
 */
export class DiskBlobs {
  readonly #folder: string
  readonly #databaseId: string | null
  /** The folders whose names are known to be on the disk, or on their way there. */
  readonly #flushed = new Map<string, Promise<void>>()

  /** Blobs are stored only while the folder bears the mark of this database; null: whatever mark it bears. */
  constructor(folder: string, databaseId: string | null = null) {
    this.#folder = folder
    this.#databaseId = databaseId
  }

  /** Begins a blob; `key` is a UUID. Throws `NotOurFolder`. */
  async create(key: string): Promise<BlobWriter> {
    await this.#requireOurs()
    const path = this.pathOf(key)
    const temporary = `${path}.tmp`
    await this.#makeFolder(dirname(path))
    const file = await open(temporary, 'wx', 0o600)
    const buffered = new BufferedWriter(file)
    return {
      write: (chunk) => buffered.write(chunk),
      commit: async () => {
        await buffered.flush()
        await file.sync()
        await file.close()
        await rename(temporary, path)
        await syncFolder(dirname(path))
        // Files below an empty mount point are hidden once the disk is mounted again.
        await this.#requireOurs(key).catch(async (error) => {
          await rm(path, { force: true })
          throw error
        })
      },
      abort: async () => {
        await file.close().catch(() => {}) // closed already when commit failed half-way
        await rm(temporary, { force: true })
      },
    }
  }

  async put(key: string, bytes: Buffer): Promise<void> {
    const writer = await this.create(key)
    try {
      await writer.write(bytes)
      await writer.commit()
    } catch (error) {
      await writer.abort()
      throw error
    }
  }

  /** All of it. */
  read(key: string): Readable {
    return createReadStream(this.pathOf(key))
  }

  /**
   * The bytes from `start` to `end`, which is the last one; null where there is no such blob. One that is deleted meanwhile
   * is read to its end.
   */
  async open(key: string, range: { start: number; end: number }): Promise<Readable | null> {
    const file = await open(this.pathOf(key), 'r').catch(nullWhereMissing)
    return file?.createReadStream(range) ?? null
  }

  async has(key: string): Promise<boolean> {
    return (await stat(this.pathOf(key)).catch(nullWhereMissing)) !== null
  }

  /** The files of one part of the store, 0 to 255; what bears no name of ours is passed over. */
  async list(part: number): Promise<StoredFile[]> {
    const names = await readdir(join(this.#folder, folderOf(part))).catch(nullWhereMissing)
    return (names ?? []).flatMap((name) => {
      const [, key, ending] = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.tmp)?$/.exec(name) ?? []
      return key?.endsWith(folderOf(part)) ? { name, key, isFinished: ending === undefined } : []
    })
  }

  /** When something was last written to the file, by the clock of the file system; null where it is gone. */
  async writtenAtMs({ key, name }: StoredFile): Promise<number | null> {
    const found = await stat(join(dirname(this.pathOf(key)), name)).catch(nullWhereMissing)
    return found?.mtimeMs ?? null
  }

  async remove({ key, name }: StoredFile): Promise<void> {
    await rm(join(dirname(this.pathOf(key)), name), { force: true })
  }

  /** The database that the folder belongs to; null if it bears no mark. */
  async owner(): Promise<string | null> {
    return await readMark(this.#folder)
  }

  /** Marks the folder, which belongs to the database from then on. */
  async claim(id: string): Promise<void> {
    await writeMark(this.#folder, id)
  }

  /** Why the folder is not our database's, or cannot be looked at, as while its disk is not mounted; null if it is ours. */
  async findFault(): Promise<string | null> {
    return this.#databaseId === null ? null : await findFolderFault(this.#folder, this.#databaseId)
  }

  /** Whether the folder is there: only then is a missing blob gone. */
  async isThere(): Promise<boolean> {
    return (await this.findFault()) === null
  }

  /** Deleting what is not there is no fault: a crash may have come between the row and the file. */
  async delete(key: string): Promise<void> {
    await rm(this.pathOf(key), { force: true })
  }

  /** Where a blob stands once it is committed. */
  pathOf(key: string): string {
    // Version 7 UUIDs begin with their time; the last characters are random and spread the folders.
    return join(this.#folder, key.slice(-2), key)
  }

  /** Throws if the folder is not ours, or does not hold the blob. */
  async #requireOurs(key?: string): Promise<void> {
    if (this.#databaseId === null) return
    const file = key && join(key.slice(-2), key)
    const fault = await findFolderFault(this.#folder, this.#databaseId, file)
    if (fault !== null) throw new NotOurFolder(fault)
  }

  /** Makes the folder durable: once a process, for an earlier one may have ended between making and flushing it. */
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

/** Chunks on their way to a file, in one buffer that is used again, so that those of the socket are free at once. */
class BufferedWriter {
  readonly #file: FileHandle
  readonly #buffer = Buffer.allocUnsafeSlow(bufferedBytes)
  #length = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      const count = chunk.copy(this.#buffer, this.#length, at)
      this.#length += count
      at += count
      if (this.#length === this.#buffer.length) await this.flush()
    }
  }

  async flush(): Promise<void> {
    const length = this.#length
    this.#length = 0
    for (let at = 0; at < length; ) at += (await this.#file.write(this.#buffer, at, length - at)).bytesWritten
  }
}

/** Flushes the names of all folders from `made` down to `path`, each of which stands in the folder above it. */
async function syncAbove(path: string, made: string): Promise<void> {
  await syncFolder(dirname(path))
  if (path.length > made.length) await syncAbove(dirname(path), made)
}
