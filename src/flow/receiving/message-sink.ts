// Takes in one message as it comes: in memory while it is small, in a blob from the moment that it is not.
import { newUuid } from '../../base/ids.ts'
import type { Blobs, BlobWriter } from '../../blobs/blobs.ts'
import { maxInlineBytes, type RawRow } from '../../store/mailbox/raws.ts'

export interface TakenMessage {
  raw: RawRow
  /** All of a small message, and at least the first 256 KiB of a large one. */
  start: Buffer
}

export class MessageSink {
  readonly #blobs: Blobs
  readonly #id = newUuid()
  #chunks: Buffer[] = []
  #sizeBytes = 0
  /** What came before the blob was begun; null while there is none. */
  #start: Buffer | null = null
  #blob: BlobWriter | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(blobs: Blobs) {
    this.#blobs = blobs
  }

  /** The promise holds the peer back until the disk has the chunk; what cannot be written is said by `end`. */
  write(chunk: Buffer): void | Promise<void> {
    this.#sizeBytes += chunk.length
    if (this.#start) return this.#append(chunk).catch(() => {})
    this.#chunks.push(chunk)
    if (this.#sizeBytes <= maxInlineBytes) return
    this.#start = Buffer.concat(this.#chunks.splice(0))
    return this.#append(this.#start).catch(() => {})
  }

  /** All is there, flushed to the disk where it is in a blob. Rejects as the disk does; then nothing is left of it. */
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
