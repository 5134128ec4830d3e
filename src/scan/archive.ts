// Finds in an archive what a scanner passes over without a word: encrypted files, and more than it unpacks.

const localHeader = Buffer.from('PK\x03\x04', 'latin1')
const centralHeader = Buffer.from('PK\x01\x02', 'latin1')
/** What clamd looks into by default: MaxFileSize and MaxFiles. */
const mostBytes = 100 << 20
const mostFiles = 10_000
/** Nothing that people send shrinks to a 250th; what unpacks to less than 10 MiB harms nobody. */
const mostRatio = 250
const harmlessBytes = 10 << 20

/**
 * Why bytes that a scanner let pass cannot be called clean, or null where they can. clamd says nothing of encryption
 * unless it is told to (AlertEncrypted), and nothing of a file in a ZIP archive that is over its MaxFileSize, whatever it
 * is told. Linear in the size; it looks at headers and unpacks nothing.
 */
export function findUnscannable(content: Buffer): string | null {
  if (content.length > mostBytes) return `larger than ${mostBytes} bytes`
  // Names of folders stand in both kinds of headers, and either can be wrong: an unpacker may believe each of them.
  const local = readHeaders(content, localHeader, { flags: 6, size: 22, omitted: 0 })
  const central = readHeaders(content, centralHeader, { flags: 8, size: 24, omitted: inZip64 })
  if (local.isEncrypted || central.isEncrypted) return 'an encrypted archive'
  if (local.files > mostFiles || central.files > mostFiles)
    return `an archive of more than ${mostFiles} files`
  const unpackedBytes = Math.max(local.bytes, central.bytes, gzipBytes(content))
  if (unpackedBytes > mostBytes) return `an archive of ${unpackedBytes} bytes`
  if (unpackedBytes > harmlessBytes && unpackedBytes > mostRatio * content.length)
    return `an archive that unpacks to ${unpackedBytes} bytes`
  return null
}

/** Where a size of four bytes does not suffice, or is not known yet, this stands for it. */
const inZip64 = 0xffffffff

interface HeaderOffsets {
  flags: number
  size: number
  /** What a size that stands elsewhere counts. */
  omitted: number
}

interface Headers {
  files: number
  bytes: number
  isEncrypted: boolean
}

/** What the ZIP headers under a signature say, wherever they stand: archives are found within others, and after programs. */
function readHeaders(content: Buffer, signature: Buffer, offsets: HeaderOffsets): Headers {
  const headers: Headers = { files: 0, bytes: 0, isEncrypted: false }
  const last = content.length - offsets.size - 4
  let at = content.indexOf(signature)
  while (at >= 0 && at <= last && headers.files <= mostFiles && !headers.isEncrypted) {
    // Four bytes come about by chance in what is packed, but never so often that they were too many files. To look at
    // each of a million would hold up the event loop.
    headers.files++
    const version = content[at + offsets.flags - 2]!
    const flags = content.readUInt16LE(at + offsets.flags)
    const method = content.readUInt16LE(at + offsets.flags + 2)
    // With a version and a method that exist they hardly ever are by chance.
    if (version <= 63 && method <= 99) {
      const size = content.readUInt32LE(at + offsets.size)
      headers.bytes += size === inZip64 ? offsets.omitted : size
      headers.isEncrypted = (flags & 1) === 1
    }
    at = content.indexOf(signature, at + signature.length)
  }
  return headers
}

/** The size that a gzip file gives at its end. */
function gzipBytes(content: Buffer): number {
  const isGzip = content.length >= 18 && content[0] === 0x1f && content[1] === 0x8b
  return isGzip ? content.readUInt32LE(content.length - 4) : 0
}
