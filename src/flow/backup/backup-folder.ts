// The folder of a backup: its layout, whether the backup is finished, and whether a folder can take a new one.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StartRefused } from '../../base/errors.ts'
import { syncFolder } from '../../base/sync-folder.ts'
import { format, formatManifest, formatVersion, type Manifest, parseManifest } from './manifest.ts'

const manifestFile = 'manifest.json'
/** Exists until the manifest does. */
const unfinishedFile = 'unfinished'
/** Entries that the file system itself keeps in the root of a disk. */
const notOurs = new Set(['lost+found'])

export const names = {
  tables: 'tables',
  blobs: 'blobs',
  blobList: 'blobs.jsonl',
  /** The keys that the snapshot names. Removed at the end. */
  wantedBlobs: 'blobs-wanted',
  key: 'key.sealed',
} as const

export function tableFile(name: string): string {
  return `${names.tables}/${name}.copy.zst`
}

export function blobFile(key: string): string {
  return `${names.blobs}/${key.slice(-2)}/${key}`
}

/** Makes the folder, or takes an empty one or one with an interrupted backup. Refuses any other. */
export async function beginFolder(folder: string, id: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first) await syncFolder(dirname(first))
  const found = (await readdir(folder)).filter((name) => !notOurs.has(name))
  if (found.includes(manifestFile))
    throw refused(`${folder} already has a finished backup`, 'name another folder')
  if (found.length > 0 && !found.includes(unfinishedFile))
    throw refused(
      `${folder} is not empty, and has no interrupted backup`,
      'name an empty folder, or one that does not exist',
    )
  for (const name of [...Object.values(names), `${manifestFile}.new`])
    await rm(join(folder, name), { recursive: true, force: true })
  await writeFlushed(join(folder, unfinishedFile), `${id}\n`)
  for (const name of [names.tables, names.blobs]) await mkdir(join(folder, name), { mode: 0o700 })
  await syncFolder(folder)
}

/** Writes the manifest, which finishes the backup. Everything else is on disk by then. */
export async function finishFolder(folder: string, manifest: Manifest): Promise<void> {
  await rm(join(folder, names.wantedBlobs), { force: true })
  for (const part of await readdir(join(folder, names.blobs)))
    await syncFolder(join(folder, names.blobs, part))
  for (const name of [names.tables, names.blobs]) await syncFolder(join(folder, name))
  const draft = join(folder, `${manifestFile}.new`)
  await writeFlushed(draft, formatManifest(manifest))
  await syncFolder(folder)
  await rename(draft, join(folder, manifestFile))
  await rm(join(folder, unfinishedFile))
  await syncFolder(folder)
}

/** The manifest of a finished backup, or the fault of the folder. */
export async function readManifest(
  folder: string,
): Promise<{ manifest: Manifest } | { fault: string; isUnfinished: boolean }> {
  const text = await readFile(join(folder, manifestFile), 'utf8').catch(nullWhereMissing)
  if (text === null) {
    const found: string[] = (await readdir(folder).catch(nullWhereMissing)) ?? []
    const isUnfinished = found.includes(unfinishedFile)
    return { isUnfinished, fault: isUnfinished ? 'the backup was never finished' : `${folder} has no backup` }
  }
  const manifest = parseManifest(text)
  if (manifest?.format !== format) return { isUnfinished: false, fault: `${manifestFile} is damaged` }
  if (manifest.formatVersion !== formatVersion)
    return {
      isUnfinished: false,
      fault: `the backup was made by Posthorn ${manifest.posthorn}, in a format that this release cannot read`,
    }
  return { manifest }
}

export async function writeFlushed(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

function nullWhereMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('backup', reason, mend)
}
