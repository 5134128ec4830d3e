// Random access to the bytes of a Buffer, or of a file that is too large to hold in memory.

/** A Buffer implements this. Indexes are never negative. */
export interface Bytes {
  readonly length: number
  /** Undefined past the end. */
  at(index: number): number | undefined
  indexOf(wanted: number | Buffer, from: number): number
  /** The existing part of the range. Later calls do not change it. */
  subarray(start: number, end: number): Buffer
  toString(encoding: 'latin1', start: number, end: number): string
}

const pieceBytes = 64 * 1024

/** A range of bytes that is read on demand and never has to be held as a whole. */
export class ByteRange {
  readonly start: number
  readonly length: number
  readonly #bytes: Bytes

  constructor(bytes: Bytes, start: number, end: number) {
    this.#bytes = bytes
    this.start = start
    this.length = end - start
  }

  /** The first `count` bytes, or all if there are fewer. */
  first(count: number): Buffer {
    return this.#bytes.subarray(this.start, this.start + Math.min(count, this.length))
  }

  /** The range of the first `count` bytes, or of all if there are fewer. */
  upTo(count: number): ByteRange {
    return new ByteRange(this.#bytes, this.start, this.start + Math.min(count, this.length))
  }

  /** All bytes, in pieces of up to 64 KiB. */
  *pieces(): Generator<Buffer> {
    const end = this.start + this.length
    for (let at = this.start; at < end; at += pieceBytes)
      yield this.#bytes.subarray(at, Math.min(at + pieceBytes, end))
  }
}
