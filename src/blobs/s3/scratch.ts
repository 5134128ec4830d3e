// Files for passing bytes in the data folder. They have no name, so nothing is left of them after a crash.
import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const readBytes = 256 * 1024

/** Gives `use` an empty file that only this process can reach. It is gone once `use` has ended. */
export async function withScratch<Found>(
  folder: string,
  use: (file: FileHandle) => Promise<Found>,
): Promise<Found> {
  const file = await openScratch(folder)
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** Opens such a file. The caller closes it. */
export async function openScratch(folder: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `passing-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  await rm(path)
  return file
}

/** A path by which this process can open the file, also in its threads. */
export function pathOf(file: FileHandle): string {
  return `/dev/fd/${file.fd}`
}

/** Reads the first `sizeBytes` of the file. */
export async function* readStart(file: FileHandle, sizeBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < sizeBytes; ) {
    const wanted = Math.min(readBytes, sizeBytes - at)
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at)
    if (bytesRead === 0) throw new Error('a file in the data folder is shorter than what was written to it')
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
