// Claims the data folder for one running service, and checks that all nodes of one database share a blob store.
import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartRefused } from './base/errors.ts'
import { type Blobs, NotOurStore } from './blobs/blobs.ts'
import { hasMark } from './blobs/node-marks.ts'
import type { Db } from './postgres/db.ts'
import { holdLock, isLockOf, lockClasses } from './postgres/locks.ts'
import { listNodeMarks } from './store/nodes.ts'

/** A claimed folder, held until `release`. `number` is the folder's own. */
export interface ClaimedFolder {
  number: number
  release(): Promise<void>
}

/** Claims the folder by an advisory lock, which ends with the process. Refuses if another service holds it. */
export async function claimFolder(db: Db, dataDir: string): Promise<ClaimedFolder> {
  const number = await folderNumber(`${dataDir}/folder-id`)
  return (await claim(db, number)) ?? refuseFolder(dataDir)
}

/** How long the session of a worker that was killed may outlive it. */
const formerMs = 5_000
const askAgainMs = 100

/**
 * Claims a worker's number in the folder, which its supervisor has claimed: each worker has its own mark. Refuses while the
 * workers of a supervisor that was killed still drain.
 */
export async function joinFolder(db: Db, dataDir: string, worker: number): Promise<ClaimedFolder> {
  const number = ((await folderNumber(`${dataDir}/folder-id`)) + worker) % 2 ** 31
  for (let waitedMs = 0; waitedMs < formerMs; waitedMs += askAgainMs) {
    const claimed = await claim(db, number)
    if (claimed) return claimed
    await sleep(askAgainMs)
  }
  return refuseFolder(dataDir)
}

async function claim(db: Db, number: number): Promise<ClaimedFolder | null> {
  const lock = await holdLock(db, lockClasses.folder, number)
  return lock && { number, release: async () => lock.release() }
}

function refuseFolder(dataDir: string): never {
  throw new StartRefused(
    'data folder',
    `another Posthorn uses ${dataDir}`,
    `stop it first, or set POSTHORN_DATA_DIR to another folder; if this folder is a copy of another ` +
      "node's, delete its folder-id and set POSTHORN_BLOB_URL to the folder of the other nodes",
  )
}

/** Whether a service has claimed the folder, or the folder that it is a copy of. */
export async function isFolderClaimed(db: Db, dataDir: string): Promise<boolean> {
  const text = await readFile(`${dataDir}/folder-id`, 'utf8').catch(() => null) // it was never served
  const number = text === null ? null : numberIn(text)
  if (number === null) return false
  const [row] = await db.query<{ taken: boolean }>(
    `select exists (select from pg_locks l where ${isLockOf(lockClasses.folder)} and l.objid = $1) as taken`,
    [number],
  )
  return row!.taken
}

/** Returns the folder's own number, which its first use creates. */
async function folderNumber(file: string): Promise<number> {
  await writeFile(file, String(randomInt(2 ** 31)), { flag: 'wx', mode: 0o600 }).catch((error) => {
    if (error.code !== 'EEXIST') throw notOurs(file, `cannot be written (${error.code})`)
  })
  const text = await readFile(file, 'utf8').catch(({ code }) => {
    throw notOurs(file, `cannot be read (${code})`)
  })
  const number = numberIn(text)
  if (number === null)
    throw new StartRefused(
      'data folder',
      `${file} does not hold a number`,
      'delete it, or set POSTHORN_DATA_DIR to another folder',
    )
  return number
}

function numberIn(text: string): number | null {
  return /^\d{1,10}$/.test(text.trim()) && Number(text) < 2 ** 31 ? Number(text) : null
}

function notOurs(file: string, reason: string): StartRefused {
  const mend = 'let this user read and write the folder, or set POSTHORN_DATA_DIR to another'
  return new StartRefused('data folder', `${file} ${reason}`, mend)
}

/** Refuses a blob store that lacks the living nodes' marks: the other nodes could not read large mail in it. */
export async function requireSharedBlobs(
  { db, blobs }: { db: Db; blobs: Blobs },
  own: number | null,
): Promise<void> {
  for (const mark of await listNodeMarks(db)) {
    // Our own number can only be from an earlier run of this service, because the folder is claimed.
    if (mark.folder === own || (await hasMark(blobs, mark).catch(refuseToStart))) continue
    // A slow store: the node has renewed its mark since it was listed, or has left.
    const renewed = (await listNodeMarks(db)).find(({ folder }) => folder === mark.folder)
    if (!renewed || (await hasMark(blobs, renewed).catch(refuseToStart))) continue
    throw new StartRefused(
      'blobs',
      `${blobs.location} is not the blob store of the other nodes of this database`,
      'set POSTHORN_BLOB_URL of every node to one folder or bucket that all of them see',
    )
  }
}

function refuseToStart(error: unknown): never {
  if (!(error instanceof NotOurStore)) throw error
  const mend = 'start this node when the store answers: only then can it see that the other nodes share it'
  throw new StartRefused('blobs', error.message, mend)
}
