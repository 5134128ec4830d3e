// Writes chunks to a file through one reused buffer, so that the socket's chunks are free at once.
import type { FileHandle } from 'node:fs/promises'

const bufferedBytes = 256 * 1024

export class BufferedWriter {
  readonly #file: FileHandle
  readonly #buffer = Buffer.allocUnsafeSlow(bufferedBytes)
  #length = 0
  #position = 0

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
    for (let at = 0; at < length; ) {
      const { bytesWritten } = await this.#file.write(this.#buffer, at, length - at, this.#position)
      at += bytesWritten
      this.#position += bytesWritten
    }
  }

  /** The next chunk overwrites the file from its start. */
  rewind(): void {
    this.#length = 0
    this.#position = 0
  }
}
