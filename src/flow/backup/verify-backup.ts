// Verifies a finished backup: every file's checksum, and whether a passphrase opens the key.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { blobFile, names, readManifest, tableFile } from './backup-folder.ts'
import { checkFile, readFileBytes } from './checked-files.ts'
import { inGroups, readRecords } from './copy-blobs.ts'
import type { BlobRecord, CheckedFile, Manifest } from './manifest.ts'
import { formatBytes, ProgressReporter } from './progress-reporter.ts'
import { openKeys } from './sealed-key.ts'

export interface Verified {
  status: 'ok' | 'damaged' | 'unfinished'
  /** Null if it cannot be read. */
  manifest: Manifest | null
  /** The faults, up to a hundred lines. */
  faults: string[]
}

interface Options {
  /** Null: does not check whether the key can be opened. */
  passphrase: string | null
  progress(line: string): void
}

const maxFaults = 100
const atOnce = 4

/** Reads the whole backup. Returns faults instead of throwing them, except for a wrong passphrase. */
export async function verifyBackup(folder: string, { passphrase, progress }: Options): Promise<Verified> {
  const read = await readManifest(folder)
  if ('fault' in read)
    return { status: read.isUnfinished ? 'unfinished' : 'damaged', manifest: null, faults: [read.fault] }
  const { manifest } = read
  const faults: string[] = []
  const check = async (name: string, expected: CheckedFile) => {
    const fault = await compare(join(folder, name), name, expected)
    if (fault && faults.length < maxFaults) faults.push(fault)
  }
  const reporter = new ProgressReporter(progress)
  for (const table of manifest.tables) {
    await check(tableFile(table.name), table)
    reporter.say(() => `table ${table.name}: ${formatBytes(table.sizeBytes)}`)
  }
  if (manifest.key) await check(names.key, manifest.key)
  await check(names.blobList, manifest.blobs.list)
  // No line of a damaged list can be trusted.
  if (!faults.some((fault) => fault.startsWith(names.blobList))) await checkBlobs(folder, { check, progress })
  if (faults.length === 0 && manifest.key && passphrase !== null)
    await openKeys(await readFile(join(folder, names.key), 'utf8'), passphrase, manifest.id)
  return { status: faults.length > 0 ? 'damaged' : 'ok', manifest, faults }
}

async function checkBlobs(
  folder: string,
  { check, progress }: { check(name: string, file: BlobRecord): Promise<void> } & Pick<Options, 'progress'>,
): Promise<void> {
  const reporter = new ProgressReporter(progress)
  let count = 0
  const records = readRecords(readFileBytes(join(folder, names.blobList)))
  for await (const group of inGroups(records, atOnce)) {
    await Promise.all(group.map((record) => check(blobFile(record.key), record)))
    count += group.length
    reporter.say(() => `blobs: ${count}`)
  }
}

async function compare(path: string, name: string, expected: CheckedFile): Promise<string | null> {
  const found = await checkFile(path)
  if (!found) return `${name} is missing`
  if (found.sizeBytes !== expected.sizeBytes)
    return `${name} has ${found.sizeBytes} bytes instead of ${expected.sizeBytes}`
  return found.sha256 === expected.sha256 ? null : `${name} is damaged`
}
