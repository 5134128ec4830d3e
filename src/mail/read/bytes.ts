// Bytes that are read where they are asked for: those of a Buffer, or of a file that is too large to hold.

/** A Buffer is such. Indexes are never negative. */
export interface Bytes {
  readonly length: number
  /** Undefined past the end. */
  at(index: number): number | undefined
  indexOf(wanted: number | Buffer, from: number): number
  /** What of the range there is; it stays as it is. */
  subarray(start: number, end: number): Buffer
  toString(encoding: 'latin1', start: number, end: number): string
}

const pieceBytes = 64 * 1024

/** A stretch of bytes that is read when it is needed, and never has to be held as a whole. */
export class ByteRange {
  readonly start: number
  readonly length: number
  readonly #bytes: Bytes

  constructor(bytes: Bytes, start: number, end: number) {
    this.#bytes = bytes
    this.start = start
    this.length = end - start
  }

  /** The first `count` bytes, or all where there are fewer. */
  first(count: number): Buffer {
    return this.#bytes.subarray(this.start, this.start + Math.min(count, this.length))
  }

  /** The range of the first `count` bytes, or of all where there are fewer. */
  upTo(count: number): ByteRange {
    return new ByteRange(this.#bytes, this.start, this.start + Math.min(count, this.length))
  }

  /** All of it, one piece after the other. */
  *pieces(): Generator<Buffer> {
    const end = this.start + this.length
    for (let at = this.start; at < end; at += pieceBytes)
      yield this.#bytes.subarray(at, Math.min(at + pieceBytes, end))
  }
}
