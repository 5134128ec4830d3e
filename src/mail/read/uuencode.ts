// Decodes uuencode, the file format of mail from before MIME: piece by piece, linear, and never more bytes out than in.

const lf = 0x0a
const cr = 0x0d
/** The rest of a longer line is ignored. A line has a length, four characters for each three of 63 bytes, and a CR. */
const maxLineBytes = 1 + 84 + 1
const nothing = Buffer.alloc(0)

/**
 * Decodes the lines between `begin 644 name` and `end`, with the same result wherever the pieces are cut. QUIRK: spaces
 * at line ends mean zeros and get lost in transit (POSIX uuencode writes backquotes for them).
 */
export class UuDecoder {
  readonly #line = Buffer.alloc(maxLineBytes)
  #lineBytes = 0
  #isOpen = false
  #isEnded = false
  #takenBytes = 0
  #givenBytes = 0

  /** A `begin` line was read. Without one the body is no uuencode. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  decode(piece: Buffer): Buffer {
    const decoded: Buffer[] = []
    for (let at = 0; at < piece.length && !this.#isEnded; ) {
      const found = piece.indexOf(lf, at)
      const lineEnd = found < 0 ? piece.length : found
      piece.copy(this.#line, Math.min(this.#lineBytes, maxLineBytes), at, lineEnd)
      this.#lineBytes += lineEnd - at
      const line = found < 0 ? nothing : this.end()
      if (line.length > 0) decoded.push(line)
      at = lineEnd + 1
    }
    return decoded.length === 0 ? nothing : Buffer.concat(decoded)
  }

  /** The bytes of the last line if no line end followed it. */
  end(): Buffer {
    const kept = Math.min(this.#lineBytes, maxLineBytes)
    const length = kept > 0 && this.#line[kept - 1] === cr ? kept - 1 : kept
    this.#takenBytes += this.#lineBytes + 1
    this.#lineBytes = 0
    if (this.#isEnded || length === 0) return nothing
    if (this.#isOpen) return this.#decodeLine(length)
    this.#isOpen = /^begin [0-7]{3,4}(?: |$)/.test(this.#line.toString('latin1', 0, length))
    return nothing
  }

  #decodeLine(length: number): Buffer {
    const line = this.#line
    const sign = line[0]!
    if (sign === 0x65) this.#isEnded = line.toString('latin1', 0, length).trimEnd() === 'end'
    // A line that does not begin with a length is a remark.
    if (sign < 0x20 || sign > 0x60) return nothing
    // A line of one character can mean 63 zeros, so megabytes of such lines would become gigabytes.
    const size = Math.min((sign - 0x20) & 63, this.#takenBytes - this.#givenBytes)
    const bytes = Buffer.allocUnsafe(size)
    const six = (index: number) => (index < length ? (line[index]! - 0x20) & 63 : 0)
    for (let at = 0, index = 1; at < size; at += 3, index += 4) {
      const group = (six(index) << 18) | (six(index + 1) << 12) | (six(index + 2) << 6) | six(index + 3)
      // Writes past the last byte have no effect.
      bytes[at] = group >> 16
      bytes[at + 1] = group >> 8
      bytes[at + 2] = group
    }
    this.#givenBytes += size
    return bytes
  }
}

/** Whether the pieces of a body contain a `begin` line. Without one the body is no uuencode. */
export function isUuencode(pieces: Iterable<Buffer>): boolean {
  const decoder = new UuDecoder()
  for (const piece of pieces) {
    decoder.decode(piece)
    if (decoder.isOpen) return true
  }
  decoder.end()
  return decoder.isOpen
}
