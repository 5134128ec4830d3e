// The mark in a blob folder: the id of the database that owns its blobs. Large mail is acknowledged only if it is there.
import { constants } from 'node:fs'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../base/sync-folder.ts'

const markFile = 'database-id'
/** The mark while it is written. A crash may leave it. */
export const unfinishedMark = `${markFile}.new`

/** Returns the id in the folder's mark; null if it has none. Rejects if the disk fails. */
export async function readMark(folder: string): Promise<string | null> {
  const mark = await readFile(join(folder, markFile), 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return ''
  })
  return mark.trim() || null
}

/** Marks the folder as that of the database `id`. The mark is durable when this resolves. */
export async function writeMark(folder: string, id: string): Promise<void> {
  const path = join(folder, markFile)
  const unfinished = join(folder, unfinishedMark)
  const file = await open(unfinished, 'w', 0o600)
  try {
    await file.writeFile(id)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(unfinished, path)
  await syncFolder(folder)
}

/** Removes the mark for good. */
export async function removeMark(folder: string): Promise<void> {
  await rm(join(folder, markFile), { force: true })
  await syncFolder(folder)
}

/**
 * Returns why the folder is not the one that database `id` marked, or does not contain `file`; null if all is well. Checks
 * both in the same folder, even if a disk is mounted or unmounted at its path meanwhile. Never rejects.
 */
export async function findFolderFault(folder: string, id: string, file?: string): Promise<string | null> {
  try {
    return await inOneFolder(folder, async (held) => {
      const mark = await readMark(held)
      if (mark === null)
        return `${folder} has no ${markFile}: its disk is not mounted, or it is another folder`
      if (mark !== id) return `${folder} belongs to another database (${markFile})`
      if (file === undefined || (await exists(join(held, file)))) return null
      return `${folder} was replaced by another folder while ${file} was written`
    })
  } catch (error) {
    return `${folder} cannot be read (${(error as NodeJS.ErrnoException).code})`
  }
}

/** Gives `read` a path that stays in the folder that is there now. Without Linux's /proc it is the plain path. */
async function inOneFolder<Found>(folder: string, read: (held: string) => Promise<Found>): Promise<Found> {
  if (process.platform !== 'linux') return await read(folder)
  const held = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return await read(`/proc/self/fd/${held.fd}`)
  } finally {
    await held.close()
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    (error) => {
      if (error.code !== 'ENOENT') throw error
      return false
    },
  )
}
