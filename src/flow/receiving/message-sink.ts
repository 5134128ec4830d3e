// Receives one message in chunks: in memory while it is small, in a blob once it is larger.
import { newUuid } from '../../base/ids.ts'
import type { Blobs, BlobWriter } from '../../blobs/blobs.ts'
import { maxInlineBytes, type RawRow } from '../../store/mailbox/raws.ts'

export interface TakenMessage {
  raw: RawRow
  /** All of a small message, or at least the first 256 KiB of a large one. */
  start: Buffer
}

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
