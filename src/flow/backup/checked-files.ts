// Files with checksums: written and flushed, copied, and verified when they are read.
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { StartRefused } from '../../base/errors.ts'
import type { CheckedFile } from './manifest.ts'

const readBytes = 512 * 1024

/** Writes a new file that only its owner can read. It is on disk when this resolves. */
export async function writeChecked(path: string, pieces: AsyncIterable<Buffer>): Promise<CheckedFile> {
  const file = await open(path, 'w', 0o600)
  try {
    const written = await hash(pieces, (piece) => writeAll(file, piece))
    await file.sync()
    return written
  } finally {
    await file.close()
  }
}

/** Yields the bytes of a file. Throws after the last one unless the file is as expected. */
export async function* readChecked(
  path: string,
  named: string,
  expected: CheckedFile,
): AsyncGenerator<Buffer> {
  const digest = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of readFileBytes(path)) {
    digest.update(piece)
    sizeBytes += piece.length
    yield piece
  }
  if (sizeBytes !== expected.sizeBytes || digest.digest('hex') !== expected.sha256) throw damaged(named)
}

/** The file's current size and checksum. Null if there is no file. */
export async function checkFile(path: string): Promise<CheckedFile | null> {
  try {
    return await hash(readFileBytes(path), async () => {})
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export function damaged(named: string): StartRefused {
  return new StartRefused('backup', `${named} of the backup is damaged`, 'restore another backup')
}

async function hash(
  pieces: AsyncIterable<Buffer>,
  use: (piece: Buffer) => Promise<void>,
): Promise<CheckedFile> {
  const digest = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of pieces) {
    digest.update(piece)
    sizeBytes += piece.length
    await use(piece)
  }
  return { sizeBytes, sha256: digest.digest('hex') }
}

/** The consumer must use each piece before it requests the next one. */
export async function* readFileBytes(path: string): AsyncGenerator<Buffer> {
  const file = await open(path, 'r')
  try {
    const stream = file.createReadStream({ autoClose: false, highWaterMark: readBytes })
    for await (const piece of stream) yield piece
  } finally {
    await file.close()
  }
}

async function writeAll(file: FileHandle, piece: Buffer): Promise<void> {
  for (let at = 0; at < piece.length; ) at += (await file.write(piece, at, piece.length - at)).bytesWritten
}

/** The lines of a text, without their line ends. */
export async function* splitLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece])
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield rest.toString('utf8', 0, end)
      rest = rest.subarray(end + 1)
    }
  }
  if (rest.length > 0) yield rest.toString()
}
