// Large bytes on disk: a file a blob, flushed and renamed before anybody is told that it is there.
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'

/** Takes chunks one after the other; nothing can be read before `commit` resolves. */
export interface BlobWriter {
  write(chunk: Buffer): Promise<void>
  /** Flushes to the disk and makes the blob visible under its key. */
  commit(): Promise<void>
  abort(): Promise<void>
}

/**
 * Blobs in a folder. A blob has exactly one owner, the raw row whose id is its key, so deleting needs no counting;
 * that is why files are named by owner and not by content.
 */
export class DiskBlobs {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Begins a blob; `key` is a UUID. */
  async create(key: string): Promise<BlobWriter> {
    const path = this.#path(key)
    const temporary = `${path}.tmp`
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(temporary, 'wx', 0o600)
    return {
      write: async (chunk) => {
        await writeAll(file, chunk)
      },
      commit: async () => {
        await file.sync()
        await file.close()
        await rename(temporary, path)
        await syncFolder(dirname(path))
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

  /** The bytes, or those from `start` to `end`, which is the last one. */
  read(key: string, range?: { start: number; end: number }): Readable {
    return createReadStream(this.#path(key), range)
  }

  /** Deleting what is not there is no fault: a crash may have come between the row and the file. */
  async delete(key: string): Promise<void> {
    await rm(this.#path(key), { force: true })
  }

  #path(key: string): string {
    // Version 7 UUIDs begin with their time; the last characters are random and spread the folders.
    return join(this.#folder, key.slice(-2), key)
  }
}

async function writeAll(file: FileHandle, chunk: Buffer): Promise<void> {
  for (let offset = 0; offset < chunk.length; ) offset += (await file.write(chunk, offset)).bytesWritten
}

async function syncFolder(folder: string): Promise<void> {
  const entry = await open(folder, 'r')
  try {
    await entry.sync()
  } finally {
    await entry.close()
  }
}
