// Large bytes beside the database: a blob is written once, under the id of the raw row that owns it, and never changed.
import type { Readable } from 'node:stream'

/** Takes chunks one after the other; nothing can be read before `commit` resolves. */
export interface BlobWriter {
  write(chunk: Buffer): Promise<void>
  /** The blob is durable, and visible under its key, once this resolves. Throws `NotOurStore`, and leaves no blob. */
  commit(): Promise<void>
  abort(): Promise<void>
}

/** A blob under its name in the store, or the rest of one that was never finished. */
export interface StoredBlob {
  name: string
  key: string
  isFinished: boolean
}

/** A store is listed in as many parts. */
export const partCount = 256

/** The store is not the one of our database, or cannot be asked: nothing is stored there. */
export class NotOurStore extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'NotOurStore'
  }
}

/** A blob has exactly one owner, whose id is its key, a UUID: deleting needs no counting. */
export interface Blobs {
  /** Names the store to operators. */
  readonly location: string

  /** Begins a blob. Throws `NotOurStore`. */
  create(key: string): Promise<BlobWriter>
  /** All at once, or in pieces, each of which is written before the next one is asked for. */
  put(key: string, bytes: Buffer | AsyncIterable<Buffer>): Promise<void>
  /** All of it. */
  read(key: string): Readable
  /**
   * The bytes from `start` to `end`, which is the last one; null if there is no such blob. One that is deleted meanwhile is
   * read to its end.
   */
  open(key: string, range: { start: number; end: number }): Promise<Readable | null>
  /** Gives `use` the path of a file that holds the blob until `use` has ended; it must not change the file. */
  withFile<Found>(key: string, use: (path: string) => Promise<Found>): Promise<Found>
  has(key: string): Promise<boolean>
  /** Deleting what is not there is no fault: a crash may have come between the row and the blob. */
  delete(key: string): Promise<void>

  /** Everything that is stored in one part, from 0; names that are not ours are passed over. */
  list(part: number): Promise<StoredBlob[]>
  /** When something was last written to it, by the store's own clock; null if it is gone. */
  writtenAtMs(stored: StoredBlob): Promise<number | null>
  remove(stored: StoredBlob): Promise<void>

  /** The database that the store belongs to; null if it bears no mark. */
  owner(): Promise<string | null>
  /** Marks the store, which belongs to the database from then on. */
  claim(databaseId: string): Promise<void>
  /** Why the store is not our database's, or cannot be asked, as while its disk is not mounted; null if it is ours. */
  findFault(): Promise<string | null>
  /** Whether the store is ours and answers: only then is a missing blob gone. */
  isThere(): Promise<boolean>

  /** The mark of the node whose data folder has this number; null if there is none. */
  readNodeMark(folder: number): Promise<string | null>
  writeNodeMark(folder: number, mark: string): Promise<void>
}
