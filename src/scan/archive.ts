// Finds in an archive what a scanner passes over without a word: encrypted files, and more than it unpacks.

const localHeader = Buffer.from('PK\x03\x04', 'latin1')
const centralHeader = Buffer.from('PK\x01\x02', 'latin1')
/** What clamd looks into by default: MaxFileSize and MaxFiles. */
const maxBytes = 100 << 20
const maxFiles = 10_000
/** Nothing that people send shrinks to a 250th; what unpacks to less than 10 MiB harms nobody. */
const maxRatio = 250
const harmlessBytes = 10 << 20

/** Where a size of four bytes does not suffice, or is not known yet, this stands for it. */
const inZip64 = 0xffffffff
/** Behind the start of a header, all that is looked at of it. */
const headerBytes = 28

/**
 * Looks at the pieces of a content, in their order, for why it cannot be called clean though a scanner let it pass. clamd
 * says nothing of encryption unless it is told to (AlertEncrypted), and nothing of a file in a ZIP archive that is over
 * its MaxFileSize, whatever it is told. Linear in the size; it looks at headers and unpacks nothing.
 */
export class ArchiveSearch {
  // Names of folders stand in both kinds of headers, and either can be wrong: an unpacker may believe each of them.
  readonly #local = new HeaderCount(localHeader, { flags: 6, size: 22, omitted: 0 })
  readonly #central = new HeaderCount(centralHeader, { flags: 8, size: 24, omitted: inZip64 })
  #sizeBytes = 0
  #start: Buffer = Buffer.alloc(0)
  /** The last bytes so far: a header may go on in the next piece. */
  #end: Buffer = Buffer.alloc(0)

  add(piece: Buffer): void {
    this.#sizeBytes += piece.length
    if (this.#start.length < 2) this.#start = Buffer.concat([this.#start, piece.subarray(0, 2)])
    const known = Buffer.concat([this.#end, piece])
    this.#local.scan(known, this.#end.length)
    this.#central.scan(known, this.#end.length)
    this.#end = Buffer.from(known.subarray(-headerBytes))
  }

  /** Of all that was added; null where nothing speaks against it. */
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

  /** The size that a gzip file gives at its end. */
  #gzipBytes(): number {
    const isGzip = this.#sizeBytes >= 18 && this.#start[0] === 0x1f && this.#start[1] === 0x8b
    return isGzip ? this.#end.readUInt32LE(this.#end.length - 4) : 0
  }
}

interface HeaderOffsets {
  flags: number
  size: number
  /** What a size that stands elsewhere counts. */
  omitted: number
}

/** What the ZIP headers under a signature say, wherever they stand: archives are found within others, and after programs. */
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

  /** Counts the headers of which the last byte lies at `from` or behind it. */
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
    // Four bytes come about by chance in what is packed, but never so often that they were too many files. To look at
    // each of a million would hold up the event loop.
    this.files++
    const version = content[at + flagsAt - 2]!
    const flags = content.readUInt16LE(at + flagsAt)
    const method = content.readUInt16LE(at + flagsAt + 2)
    // With a version and a method that exist they hardly ever are by chance.
    if (version > 63 || method > 99) return
    const size = content.readUInt32LE(at + sizeAt)
    this.bytes += size === inZip64 ? omitted : size
    this.isEncrypted = (flags & 1) === 1
  }
}
