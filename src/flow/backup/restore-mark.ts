// A mark in the data folder during a restore, so that a partial restore cannot start as a service.
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StartRefused } from '../../base/errors.ts'
import { syncFolder } from '../../base/sync-folder.ts'
import { writeFlushed } from './backup-folder.ts'

const fileOf = (dataDir: string) => join(dataDir, 'restore-unfinished')

/** The id of the backup whose restore is unfinished. Null if there is none. */
export async function findMark(dataDir: string): Promise<string | null> {
  const text = await readFile(fileOf(dataDir), 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  return text?.trim() ?? null
}

export async function leaveMark(dataDir: string, backupId: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await writeFlushed(fileOf(dataDir), `${backupId}\n`)
  await syncFolder(dataDir)
}

export async function removeMark(dataDir: string): Promise<void> {
  await rm(fileOf(dataDir), { force: true })
  await syncFolder(dataDir)
}

/** Refuses a data folder with an unfinished restore. */
export async function requireNoMark(dataDir: string): Promise<void> {
  if ((await findMark(dataDir)) === null) return
  throw new StartRefused(
    'data folder',
    `a restore into ${dataDir} was interrupted`,
    'run the same posthorn restore again, or start with an empty folder',
  )
}
