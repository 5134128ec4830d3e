// The blobs of a backup: hard-linked from a disk if possible or else copied, a few at a time, with their checksums in a list.
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Blobs } from '../../blobs/blobs.ts'
import { blobFile, names } from './backup-folder.ts'
import { checkFile, readFileBytes, splitLines, writeChecked } from './checked-files.ts'
import type { BlobRecord, Manifest } from './manifest.ts'
import { formatBytes, ProgressReporter } from './progress-reporter.ts'

interface Deps {
  blobs: Blobs
  progress(line: string): void
}

const atOnce = 4

/**
 * Copies the blobs that the snapshot names. Returns those that the store had lost before, which is no fault of the backup.
 */
export async function copyBlobs({ blobs, progress }: Deps, folder: string): Promise<Manifest['blobs']> {
  const found = { count: 0, totalBytes: 0, missing: [] as string[] }
  const reporter = new ProgressReporter(progress)
  const copy = createCopier(blobs, folder)
  const wanted = readFileBytes(join(folder, names.wantedBlobs))
  async function* records(): AsyncGenerator<Buffer> {
    for await (const keys of inGroups(splitLines(wanted), atOnce)) {
      for (const [index, record] of (await Promise.all(keys.map(copy))).entries()) {
        if (!record) {
          found.missing.push(keys[index]!)
          continue
        }
        found.count++
        found.totalBytes += record.sizeBytes
        yield Buffer.from(`${JSON.stringify(record)}\n`)
      }
      reporter.say(() => `blobs: ${found.count}, ${formatBytes(found.totalBytes)}`)
    }
  }
  const list = await writeChecked(join(folder, names.blobList), records())
  return { ...found, list }
}

/** The copier returns null if the store does not have the blob. */
function createCopier(blobs: Blobs, folder: string): (key: string) => Promise<BlobRecord | null> {
  const made = new Set<string>()
  return async (key) => {
    if (!(await blobs.has(key))) return null
    const target = join(folder, blobFile(key))
    if (!made.has(dirname(target))) {
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      made.add(dirname(target))
    }
    // A blob never changes, so two names for one file are as good as two files.
    const isLinked = await blobs.link(key, target)
    return { key, ...(isLinked ? (await checkFile(target))! : await writeChecked(target, blobs.read(key))) }
  }
}

/** The records of a backup's list, one by one. */
export async function* readRecords(pieces: AsyncIterable<Buffer>): AsyncGenerator<BlobRecord> {
  for await (const line of splitLines(pieces)) yield JSON.parse(line)
}

/** Groups the items, up to `maxItems` in each. */
export async function* inGroups<Item>(items: AsyncIterable<Item>, maxItems: number): AsyncGenerator<Item[]> {
  let group: Item[] = []
  for await (const item of items) {
    group.push(item)
    if (group.length < maxItems) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}
