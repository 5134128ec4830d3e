// A data folder belongs to one running service: the claim is an advisory lock, which falls with the process.
import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Db } from './store/db.ts'

const lockClass = 0x666f6c64 // "fold"

/** Another `serve` has the folder; the message is the line to print. */
export class FolderInUse extends Error {}

/** Claims the folder until the returned function is called; throws FolderInUse when another service has it. */
export async function claimFolder(db: Db, dataDir: string): Promise<() => Promise<void>> {
  const number = await folderNumber(`${dataDir}/folder-id`)
  const client = await db.dedicated()
  const { rows } = await client.query('select pg_try_advisory_lock($1, $2) as mine', [lockClass, number])
  if (!rows[0].mine) {
    client.release()
    throw new FolderInUse(
      `another posthorn serves ${dataDir}: stop it first, or set POSTHORN_DATA_DIR to another folder`,
    )
  }
  client.on('error', () => {}) // the claim falls with the database; so does everything else that could be done
  return async () => client.release(true)
}

/** The folder's own number, made at its first use. */
async function folderNumber(file: string): Promise<number> {
  await writeFile(file, String(randomInt(2 ** 31)), { flag: 'wx', mode: 0o600 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  return Number(await readFile(file, 'utf8'))
}
