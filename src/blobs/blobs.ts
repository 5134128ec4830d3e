// Storage for large bytes outside the database: a blob is written once, under the id of its raw row, and never changed.
import type { Readable } from 'node:stream'

/** Takes chunks one after the other. Nothing can be read before `commit` resolves. */
export interface BlobWriter {
  write(chunk: Buffer): Promise<void>
  /** Once this resolves, the blob is durable and readable under its key. Throws `NotOurStore`; a blob left then is an orphan. */
  commit(): Promise<void>
  abort(): Promise<void>
}

/** A blob under its name in the store, or the remains of an unfinished blob. */
export interface StoredBlob {
  name: string
  key: string
  isFinished: boolean
}

/** Number of parts in which a store is listed. */
export const partCount = 256

/** The store belongs to another database, or does not answer: nothing is stored there. */
export class NotOurStore extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.name = 'NotOurStore'
  }
}

/** The store has no blob with this key. It has the code of a missing file. */
export class NoBlob extends Error {
  readonly code = 'ENOENT'

  constructor(location: string, key: string) {
    super(`${location} has no blob ${key}`)
    this.name = 'NoBlob'
  }
}

/** Writes all pieces and commits the blob. If that fails, aborts it and throws the failure. */
export async function writeAll(
  writer: BlobWriter,
  pieces: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<void> {
  try {
    for await (const piece of pieces) await writer.write(piece)
    await writer.commit()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

/** A blob has exactly one owner, whose id is its key, a UUID. So deletion needs no reference count. */
export interface Blobs {
  /** The store's name for operators. */
  readonly location: string

  /** Begins a blob. Throws `NotOurStore`. */
  create(key: string): Promise<BlobWriter>
  /** Stores all bytes at once, or in pieces. Each piece is written before the next is requested. */
  put(key: string, bytes: Buffer | AsyncIterable<Buffer>): Promise<void>
  /** Returns the whole blob. */
  read(key: string): Readable
  /**
   * Returns the bytes from `start` to `end`, inclusive; null if there is no such blob. If the blob is deleted meanwhile, the
   * read still completes.
   */
  open(key: string, range: { start: number; end: number }): Promise<Readable | null>
  /** Gives `use` the path of a file that holds the blob until `use` has ended. `use` must not change the file. */
  withFile<Found>(key: string, use: (path: string) => Promise<Found>): Promise<Found>
  /** Gives the blob's file a second name; false if that is not possible. Such a file must not be changed. */
  link(key: string, path: string): Promise<boolean>
  has(key: string): Promise<boolean>
  /** Deleting a missing blob is no error: a crash may have come between the row and the blob. */
  delete(key: string): Promise<void>

  /** Lists all blobs of one part, from 0. Skips names that are not ours. */
  list(part: number): Promise<StoredBlob[]>
  /** Returns when it was last written, by the store's own clock; null if it is gone. */
  writtenAtMs(stored: StoredBlob): Promise<number | null>
  remove(stored: StoredBlob): Promise<void>

  /** Returns the name of something that the store contains; null if it is empty. */
  findContent(): Promise<string | null>

  /** Returns the database that owns the store; null if the store has no mark. */
  owner(): Promise<string | null>
  /** Marks the store, which then belongs to the database. */
  claim(databaseId: string): Promise<void>
  /** Removes the mark: the store then takes no blob. */
  disown(): Promise<void>
  /** Returns why the store is not ours or does not answer, such as while its disk is not mounted; null if it is ours. */
  findFault(): Promise<string | null>
  /** Returns whether the store is ours and answers. Only then does a missing blob mean that it was deleted. */
  isThere(): Promise<boolean>

  /** Returns the mark of the node whose data folder has this number; null if there is none. */
  readNodeMark(folder: number): Promise<string | null>
  writeNodeMark(folder: number, mark: string): Promise<void>
}
