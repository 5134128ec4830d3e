// A mark in the data folder during a restore, so that a partial restore cannot start as a service.
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StartRefused } from '../../base/errors.ts'
import { syncFolder } from '../../base/sync-folder.ts'
import { writeFlushed } from './backup-folder.ts'

const fileOf = (dataDir: string) => join(dataDir, 'restore-unfinished')

/** An unfinished restore: the id of its backup, and the name of the blob store that it fills. */
export interface RestoreMark {
  backupId: string
  store: string
}

/** Null if no restore is unfinished. */
export async function findMark(dataDir: string): Promise<RestoreMark | null> {
  const text = await readFile(fileOf(dataDir), 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  const [backupId = '', store = ''] = text.split('\n')
  return { backupId, store }
}

export async function leaveMark(dataDir: string, { backupId, store }: RestoreMark): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await writeFlushed(fileOf(dataDir), `${backupId}\n${store}\n`)
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
