// Receives one message in chunks: in memory while it is small, in a blob once it is larger.
import { newUuid } from '../base/ids.ts'
import { type Blobs, type BlobWriter, NotOurStore } from '../blobs/blobs.ts'
import { type Reply, reply } from '../smtp/reply.ts'
import { maxInlineBytes, type RawRow } from '../store/mailbox/raws.ts'

export interface TakenMessage {
  raw: RawRow
  /** All of a small message, or at least the first 256 KiB of a large one. */
  start: Buffer
}

export const outOfOrder = reply(451, '4.3.0', 'Message could not be stored, try again later')
const noFolder = reply(
  452,
  '4.3.0',
  'Insufficient system storage for a message of this size, try again later',
)
export const noRoom = reply(452, '4.3.1', 'Insufficient system storage, try again later')

export class MessageSink {
  readonly #blobs: Blobs
  readonly #id = newUuid()
  #chunks: Buffer[] = []
  #sizeBytes = 0
  /** The bytes before the blob was begun. Null while there is no blob. */
  #start: Buffer | null = null
  #blob: BlobWriter | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** The promise delays the peer until the chunk is on disk. `end` reports write errors. */
  write(chunk: Buffer): void | Promise<void> {
    this.#sizeBytes += chunk.length
    if (this.#start) return this.#append(chunk).catch(() => {})
    this.#chunks.push(chunk)
    if (this.#sizeBytes <= maxInlineBytes) return
    this.#start = Buffer.concat(this.#chunks.splice(0))
    return this.#append(this.#start).catch(() => {})
  }

  /**
   * Completes the message, flushing its blob if there is one. Rejects with the disk's error, after it has removed the blob.
   */
  async end(): Promise<TakenMessage> {
    const [id, sizeBytes] = [this.#id, this.#sizeBytes]
    if (!this.#start) {
      const bytes = Buffer.concat(this.#chunks)
      return { raw: { id, sizeBytes, bytes, blob: null }, start: bytes }
    }
    try {
      await this.#writing
      await this.#blob!.commit()
    } catch (error) {
      await this.#blob?.abort()
      throw error
    }
    return { raw: { id, sizeBytes, bytes: null, blob: id }, start: this.#start }
  }

  abort(): void {
    this.#chunks = []
    void this.#writing.catch(() => {}).then(() => this.#blob?.abort())
  }

  #append(chunk: Buffer): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      this.#blob ??= await this.#blobs.create(this.#id)
      await this.#blob.write(chunk)
    })
    return this.#writing
  }
}

/** Returns the reply for an error of `MessageSink.end`. Throws a bug of ours. */
export function storageReply(error: unknown): Reply {
  if (error instanceof NotOurStore) return noFolder
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return noRoom
  if (code === undefined) throw error
  return outOfOrder
}
