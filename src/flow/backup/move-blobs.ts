// Moves all blobs to another store: the bulk while the service runs, the rest while no node runs.
import { createHash } from 'node:crypto'
import { StartRefused } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import { readDatabaseId } from '../../store/database-identity.ts'
import { findRawIds, listBlobs } from '../../store/mailbox/raws.ts'
import { isServed } from '../../store/nodes.ts'
import { inGroups } from './copy-blobs.ts'
import { formatBytes, ProgressReporter } from './progress-reporter.ts'

interface MoveDeps {
  db: Db
  from: Blobs
  to: Blobs
  /** Receives the progress, in words for people. */
  progress(line: string): void
}

export interface Moved {
  copied: number
  copiedBytes: number
  /** Blobs that rows name and neither store has. */
  lost: string[]
  /** `running`: a node may still write to the old store, so the move must be run again once no node runs. */
  status: 'done' | 'running'
}

const atOnce = 4

/**
 * Copies the blobs that the new store lacks, and compares each copy with what was read. The new store gets the mark of the
 * database, and the old one loses it, only if no node was alive during a whole pass. Before that a service on the new store
 * refuses large mail, so no order of steps loses any. Can be interrupted and run again. Throws `StartRefused` and
 * `NotOurStore`.
 */
export async function moveBlobs(deps: MoveDeps): Promise<Moved> {
  const { db, from, to } = deps
  const id = await readDatabaseId(db)
  await requireOwners({ from, to }, id)
  const before = await isServed(db)
  const moved = await copyAll(deps)
  if (before || (await isServed(db))) return { ...moved, status: 'running' }
  await to.claim(id)
  await from.disown()
  if ((await to.owner()) !== id) {
    await from.claim(id)
    throw refused(`${from.location} and ${to.location} are the same store`, 'name two stores')
  }
  return { ...moved, status: 'done' }
}

async function requireOwners({ from, to }: Pick<MoveDeps, 'from' | 'to'>, id: string): Promise<void> {
  const [old, next] = [await from.owner(), await to.owner()]
  // Buckets of one name at two endpoints are two stores.
  if (from.location === to.location && old === next)
    throw refused('both stores are the same', 'name two stores')
  if (next !== null && next !== id)
    throw refused(`${to.location} belongs to another database`, 'name an empty folder, bucket or prefix')
  if (old === id) return
  if (next === id) throw refused(`the blobs are already in ${to.location}`, 'set POSTHORN_BLOB_URL to it')
  throw refused(
    `${from.location} is not the store of this database`,
    'name the store of POSTHORN_BLOB_URL first',
  )
}

async function copyAll({ db, from, to, progress }: MoveDeps): Promise<Omit<Moved, 'status'>> {
  const found = { copied: 0, copiedBytes: 0, lost: [] as string[] }
  const reporter = new ProgressReporter(progress)
  let seen = 0
  for await (const keys of inGroups(listBlobs(db), atOnce)) {
    for (const [index, sizeBytes] of (await Promise.all(keys.map((key) => copy(from, to, key)))).entries()) {
      if (sizeBytes === 'missing') found.lost.push(keys[index]!)
      if (typeof sizeBytes !== 'number') continue
      found.copied++
      found.copiedBytes += sizeBytes
    }
    seen += keys.length
    reporter.say(() => `blobs: ${seen} checked, ${found.copied} copied, ${formatBytes(found.copiedBytes)}`)
  }
  // A blob that was deleted meanwhile is not lost.
  const named = await findRawIds(db, found.lost)
  return { ...found, lost: found.lost.filter((key) => named.has(key)) }
}

/** Returns the size of the copy. `there`: the new store has it already. */
async function copy(from: Blobs, to: Blobs, key: string): Promise<number | 'there' | 'missing'> {
  if (await to.has(key)) return 'there'
  if (!(await from.has(key))) return 'missing'
  const read = createHash('sha256')
  let sizeBytes = 0
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const piece of from.read(key)) {
      read.update(piece)
      sizeBytes += piece.length
      yield piece
    }
  }
  await to.put(key, pieces())
  const written = createHash('sha256')
  for await (const piece of to.read(key)) written.update(piece)
  if (written.digest('hex') === read.digest('hex')) return sizeBytes
  await to.delete(key)
  throw refused(`the copy of ${key} in ${to.location} has other bytes`, 'check that store, then move again')
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('blobs', reason, mend)
}
