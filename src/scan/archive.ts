// Detects archives that a scanner silently skips: encrypted files, and more data than it unpacks.

const localHeader = Buffer.from('PK\x03\x04', 'latin1')
const centralHeader = Buffer.from('PK\x01\x02', 'latin1')
/** clamd's default limits: MaxFileSize and MaxFiles. */
const maxBytes = 100 << 20
const maxFiles = 10_000
/** No file that people send shrinks to a 250th. An archive that unpacks to less than 10 MiB is harmless. */
const maxRatio = 250
const harmlessBytes = 10 << 20

/** Marks a size that does not fit into four bytes or is not known yet. */
const inZip64 = 0xffffffff
/** Bytes of a header that are read, from its start. */
const headerBytes = 28

/**
 * Searches the pieces of a content, in order, for a reason not to call it clean although a scanner let it pass. clamd
 * reports encryption only if AlertEncrypted is set. It never reports a file in a ZIP archive that is over its
 * MaxFileSize, whatever its settings. Linear in the size. Reads headers and unpacks nothing.
 */
export class ArchiveSearch {
  // An archive lists its files in both kinds of headers. Either can be wrong, and an unpacker may believe either.
  readonly #local = new HeaderCount(localHeader, { flags: 6, size: 22, omitted: 0 })
  readonly #central = new HeaderCount(centralHeader, { flags: 8, size: 24, omitted: inZip64 })
  #sizeBytes = 0
  #start: Buffer = Buffer.alloc(0)
  /** The last bytes so far, because a header may continue in the next piece. */
  #end: Buffer = Buffer.alloc(0)

  add(piece: Buffer): void {
    this.#sizeBytes += piece.length
    if (this.#start.length < 2) this.#start = Buffer.concat([this.#start, piece.subarray(0, 2)])
    const known = Buffer.concat([this.#end, piece])
    this.#local.scan(known, this.#end.length)
    this.#central.scan(known, this.#end.length)
    this.#end = Buffer.from(known.subarray(-headerBytes))
  }

  /** A reason not to call the content clean, or null if there is none. */
  findUnscannable(): string | null {
    if (this.#sizeBytes > maxBytes) return `larger than ${maxBytes} bytes`
    const [local, central] = [this.#local, this.#central]
    if (local.isEncrypted || central.isEncrypted) return 'an encrypted archive'
    if (local.files > maxFiles || central.files > maxFiles) return `an archive of more than ${maxFiles} files`
    const unpackedBytes = Math.max(local.bytes, central.bytes, this.#gzipBytes())
    if (unpackedBytes > maxBytes) return `an archive of ${unpackedBytes} bytes`
    if (unpackedBytes > harmlessBytes && unpackedBytes > maxRatio * this.#sizeBytes)
      return `an archive that unpacks to ${unpackedBytes} bytes`
    return null
  }

  /** The unpacked size that a gzip file states at its end. */
  #gzipBytes(): number {
    const isGzip = this.#sizeBytes >= 18 && this.#start[0] === 0x1f && this.#start[1] === 0x8b
    return isGzip ? this.#end.readUInt32LE(this.#end.length - 4) : 0
  }
}

interface HeaderOffsets {
  flags: number
  size: number
  /** Counts instead of a size that is stored elsewhere. */
  omitted: number
}

/** Sums up the ZIP headers with one signature, at any position: archives occur inside others and after programs. */
class HeaderCount {
  files = 0
  bytes = 0
  isEncrypted = false
  readonly #signature: Buffer
  readonly #offsets: HeaderOffsets

  constructor(signature: Buffer, offsets: HeaderOffsets) {
    this.#signature = signature
    this.#offsets = offsets
  }

  /** Counts the headers whose last byte is at `from` or later. */
  scan(content: Buffer, from: number): void {
    const length = this.#offsets.size + 4
    let at = content.indexOf(this.#signature, Math.max(0, from - length + 1))
    while (at >= 0 && at + length <= content.length && this.files <= maxFiles && !this.isEncrypted) {
      this.#count(content, at)
      at = content.indexOf(this.#signature, at + this.#signature.length)
    }
  }

  #count(content: Buffer, at: number): void {
    const { flags: flagsAt, size: sizeAt, omitted } = this.#offsets
    // A signature can occur by chance in packed data, but never often enough to exceed the file limit. Examining each
    // of a million would block the event loop.
    this.files++
    const version = content[at + flagsAt - 2]!
    const flags = content.readUInt16LE(at + flagsAt)
    const method = content.readUInt16LE(at + flagsAt + 2)
    // A chance signature hardly ever has a version and a method that exist.
    if (version > 63 || method > 99) return
    const size = content.readUInt32LE(at + sizeAt)
    this.bytes += size === inZip64 ? omitted : size
    this.isEncrypted = (flags & 1) === 1
  }
}
