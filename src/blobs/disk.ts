// Large bytes on disk: a file a blob, flushed and renamed before anybody is told that it is there.
import { createReadStream } from 'node:fs'
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'

/** Takes chunks one after the other; nothing can be read before `commit` resolves. */
export interface BlobWriter {
  write(chunk: Buffer): Promise<void>
  /** Flushes to the disk and makes the blob visible under its key. */
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
const ownerFile = 'database-id'

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

  /** All of it. */
  read(key: string): Readable {
    return createReadStream(this.#path(key))
  }

  /**
   * The bytes from `start` to `end`, which is the last one; null where there is no such blob. One that is deleted meanwhile
   * is read to its end.
   */
  async open(key: string, range: { start: number; end: number }): Promise<Readable | null> {
    const file = await open(this.#path(key), 'r').catch(nullWhereMissing)
    return file?.createReadStream(range) ?? null
  }

  async has(key: string): Promise<boolean> {
    return (await stat(this.#path(key)).catch(nullWhereMissing)) !== null
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
    const found = await stat(join(dirname(this.#path(key)), name)).catch(nullWhereMissing)
    return found?.mtimeMs ?? null
  }

  async remove({ key, name }: StoredFile): Promise<void> {
    await rm(join(dirname(this.#path(key)), name), { force: true })
  }

  /** The database that the folder belongs to: `id`, where nobody has said so before. */
  async claim(id: string): Promise<string> {
    const file = join(this.#folder, ownerFile)
    const owner = await readFile(file, 'utf8').catch(nullWhereMissing)
    if (owner) return owner.trim()
    await writeFile(file, id, { mode: 0o600 })
    return id
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

function folderOf(part: number): string {
  return part.toString(16).padStart(2, '0')
}

function nullWhereMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
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
