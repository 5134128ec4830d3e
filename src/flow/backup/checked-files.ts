// Files with checksums: written and flushed, copied, and read with the certainty that they are what was written.
import { createHash } from 'node:crypto'
import { type FileHandle, link, open } from 'node:fs/promises'
import { StartRefused } from '../../base/errors.ts'
import type { CheckedFile } from './manifest.ts'

const readBytes = 512 * 1024

/** Writes a new file, for its owner alone; it is on the disk once this resolves. */
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

/** The bytes of a file; throws behind the last one unless they are the expected ones. */
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

/** What stands in the file now; null where there is none. */
export async function checkFile(path: string): Promise<CheckedFile | null> {
  try {
    return await hash(readFileBytes(path), async () => {})
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

export function damaged(named: string): StartRefused {
  return new StartRefused('backup', `${named} of the backup is damaged`, 'restore another one')
}

/** Has the same file under a second name where both are on one file system; false where that cannot be. */
export async function tryLinking(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target)
    return true
  } catch (error) {
    // Another file system, or one without links, or one that forbids them for files of others.
    const { code } = error as NodeJS.ErrnoException
    if (['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes(code ?? '')) return false
    throw error
  }
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

/** Each piece is to be used before the next one is asked for. */
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

/** The lines of a text, without their ends. */
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
