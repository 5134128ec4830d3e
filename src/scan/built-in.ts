// The development scanner, which knows only the EICAR test file and archives that are nested too deep or too large.
import { promisify } from 'node:util'
import { gunzip, inflateRaw } from 'node:zlib'
import type { Clamd, ScanVerdict } from './clamd.ts'

/** Scans attachments: clamd, or in development the built-in scanner. */
export type AttachmentScanner = Pick<Clamd, 'scan' | 'isAlive' | 'close'>

/** The notice about it for operators. */
export const builtInWords =
  'development uses a built-in scanner, which finds only the EICAR test file and archive bombs'

/** In two parts, so that no scanner takes this file for the test file (eicar.org). */
const eicar = Buffer.from(
  `X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-${'STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'}`,
  'latin1',
)
const zipHeader = Buffer.from('PK\x03\x04', 'latin1')
const gzipHeader = Buffer.from([0x1f, 0x8b])

/** A larger archive is not unpacked, and no more than this of its content. */
const maxArchiveBytes = 32 << 20
const maxUnpackedBytes = 32 << 20
/** clamd's defaults of MaxRecursion and MaxFiles. */
const maxDepth = 17
const maxFiles = 10_000

const [unpackRaw, unpackGzip] = [promisify(inflateRaw), promisify(gunzip)]
const stored = 0
const deflated = 8

/** The reason why an archive is not clean. */
class Finding extends Error {
  readonly state: 'infected' | 'failed'
  constructor(state: Finding['state'], detail: string) {
    super(detail)
    this.state = state
  }
}

export class BuiltInScanner implements AttachmentScanner {
  async scan(open: Parameters<Clamd['scan']>[0]): Promise<ScanVerdict> {
    const content = await readArchive(open())
    try {
      if (content === 'too large')
        throw new Finding('failed', `an archive larger than ${maxArchiveBytes} bytes`)
      await new Unpacking().examine(content, 0)
      return { state: 'clean', detail: '' }
    } catch (error) {
      if (!(error instanceof Finding)) throw error
      return { state: error.state, detail: error.message }
    }
  }

  async isAlive(): Promise<boolean> {
    return true
  }

  close(): void {}
}

/** Reads all pieces. Returns the whole of an archive, and the first bytes of anything else. */
async function readArchive(pieces: ReturnType<Parameters<Clamd['scan']>[0]>): Promise<Buffer | 'too large'> {
  const kept: Buffer[] = []
  let [start, sizeBytes]: [Buffer, number] = [Buffer.alloc(0), 0]
  for await (const piece of pieces) {
    sizeBytes += piece.length
    start = Buffer.concat([start, piece.subarray(0, eicar.length - start.length)])
    const mayBeArchive = start.length < zipHeader.length || isArchive(start)
    if (mayBeArchive && sizeBytes <= maxArchiveBytes) kept.push(Buffer.from(piece))
  }
  if (!isArchive(start)) return start
  return sizeBytes > maxArchiveBytes ? 'too large' : Buffer.concat(kept)
}

/** Unpacks one attachment with everything in it, under common limits. */
class Unpacking {
  #leftBytes = maxUnpackedBytes
  #leftFiles = maxFiles

  /** Throws a `Finding` if the content, or anything in it, is not clean. */
  async examine(content: Buffer, depth: number): Promise<void> {
    if (content.subarray(0, eicar.length).equals(eicar)) throw new Finding('infected', 'EICAR test file')
    if (depth > maxDepth) throw new Finding('failed', `archives nested deeper than ${maxDepth}`)
    if (isGzip(content)) await this.#unpack(unpackGzip, content, depth)
    if (!isZip(content)) return
    for (const { method, packed } of zipEntries(content)) {
      if (--this.#leftFiles < 0) throw new Finding('failed', `an archive of more than ${maxFiles} files`)
      if (method === deflated) await this.#unpack(unpackRaw, packed, depth)
      else if (method === stored) await this.examine(packed, depth + 1)
    }
  }

  async #unpack(unpack: typeof unpackRaw, packed: Buffer, depth: number): Promise<void> {
    if (this.#leftBytes <= 0) throw tooMuch()
    const content = await unpack(packed, { maxOutputLength: this.#leftBytes, chunkSize: 1 << 20 }).catch(
      (error) => {
        if (error.code === 'ERR_BUFFER_TOO_LARGE') throw tooMuch()
        return null // damaged: no program can unpack it
      },
    )
    if (!content) return
    this.#leftBytes -= content.length
    await this.examine(content, depth + 1)
  }
}

/** The files of a ZIP archive, by their local headers. */
function* zipEntries(content: Buffer): Generator<{ method: number; packed: Buffer }> {
  for (let at = 0; at >= 0; at = content.indexOf(zipHeader, at + 4)) {
    if (at + 30 > content.length) return
    const start = at + 30 + content.readUInt16LE(at + 26) + content.readUInt16LE(at + 28)
    // If the size is 0, it follows the file's data, and the unpacker finds the end.
    const sizeBytes = content.readUInt32LE(at + 18) || content.length
    yield { method: content.readUInt16LE(at + 8), packed: content.subarray(start, start + sizeBytes) }
    // Skips the files in a stored archive, because they are examined with that archive.
    if (content.readUInt16LE(at + 8) === stored) at = Math.max(at, start + content.readUInt32LE(at + 18) - 4)
  }
}

function tooMuch(): Finding {
  return new Finding('failed', `an archive that unpacks to more than ${maxUnpackedBytes} bytes`)
}

function isArchive(content: Buffer): boolean {
  return isZip(content) || isGzip(content)
}

function isZip(content: Buffer): boolean {
  return content.subarray(0, zipHeader.length).equals(zipHeader)
}

function isGzip(content: Buffer): boolean {
  return content.subarray(0, gzipHeader.length).equals(gzipHeader)
}
