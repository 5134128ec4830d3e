// The doctor's check of the blob store: whose it is, a probe, its clock, and the newest large messages.
import { randomUUID } from 'node:crypto'
import { counted } from '../../base/counted.ts'
import { StartRefused } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { readDiskRoom } from '../../blobs/disk-reserve.ts'
import type { Settings } from '../../config/settings.ts'
import { requireSharedBlobs } from '../../data-folder.ts'
import type { Db } from '../../postgres/db.ts'
import { readDatabaseId } from '../../store/database-identity.ts'
import { findNewestBlobs, findRawIds } from '../../store/mailbox/raws.ts'
import { type Check, failed, gibibytes, ok, warning, withoutRoom } from './checks.ts'

type Stored = Pick<Settings, 'blobStore' | 'diskReserveBytes'>

const name = 'blobs'
/** S3 refuses calls from a clock that differs by more than 15 minutes. */
const maxClockSeconds = 60

/** Writes, reads and deletes a probe, and looks for the newest blobs. */
export async function checkBlobs(blobs: Blobs, db: Db, settings: Stored): Promise<Check> {
  const fault = await blobs.findFault()
  if (fault !== null)
    return failed(name, `${fault}: large mail is refused`, await mendOf(blobs, db, settings))
  try {
    const probed = await probe(blobs)
    const missing = await findMissingBlobs(blobs, db)
    if (missing.length > 0) {
      const named = missing.slice(0, 5).join(', ')
      const { location } = blobs
      return failed(
        name,
        `of the newest large messages, ${counted(missing.length, 'has', 'have')} no file in ${location}: ${named}`,
        'check that POSTHORN_BLOB_URL names the store of this database, or restore the files',
      )
    }
    await requireSharedBlobs({ db, blobs }, null)
    return (await checkRoom(settings)) ?? evaluateProbe(blobs, probed)
  } catch (error) {
    if (error instanceof StartRefused) return failed(error.about, error.reason, error.mend)
    const mend =
      'folder' in settings.blobStore
        ? 'let this user write to the folder, or set POSTHORN_BLOB_URL to another'
        : 'let these credentials read, write, list and delete objects, or correct POSTHORN_BLOB_URL'
    return failed(name, (error as Error).message, mend)
  }
}

async function mendOf({ location }: Blobs, db: Db, { blobStore }: Stored): Promise<string> {
  const id = await readDatabaseId(db)
  if ('folder' in blobStore)
    return `mount its disk, or set POSTHORN_BLOB_URL to the folder of the other nodes; if a new folder replaces it, write ${id} into ${location}/database-id`
  return `correct POSTHORN_BLOB_URL or the credentials; if a new bucket replaces the old one, write ${id} into its object ${location}/database-id`
}

interface Probed {
  writtenMs: number
  /** How far the store's clock is ahead of this machine's, if a file or object says so. */
  aheadSeconds: number
}

async function probe(blobs: Blobs): Promise<Probed> {
  const key = randomUUID()
  const bytes = Buffer.from('doctor')
  const startedMs = performance.now()
  await blobs.put(key, bytes)
  try {
    const writtenMs = performance.now() - startedMs
    const atMs = await blobs.writtenAtMs({ name: key, key, isFinished: true })
    const aheadSeconds = Math.round(((atMs ?? Date.now()) - Date.now()) / 1_000)
    const read = await blobs.read(key).toArray()
    if (!Buffer.concat(read).equals(bytes))
      throw new Error(`${blobs.location} returns other bytes than were written`)
    return { writtenMs, aheadSeconds }
  } finally {
    await blobs.delete(key)
  }
}

function evaluateProbe({ location }: Blobs, { writtenMs, aheadSeconds }: Probed): Check {
  const detail = `${location}, written in ${writtenMs.toFixed(1)} ms`
  if (Math.abs(aheadSeconds) <= maxClockSeconds) return ok(name, detail)
  const direction = aheadSeconds > 0 ? 'behind' : 'ahead of'
  return warning(
    name,
    `${detail}; this machine's clock is ${Math.abs(aheadSeconds)} s ${direction} the store's`,
    'synchronize the clocks by NTP: S3 refuses calls from a clock that differs by 15 minutes',
  )
}

async function checkRoom({ blobStore, diskReserveBytes }: Stored): Promise<Check | null> {
  if (!('folder' in blobStore)) return null
  const { folder } = blobStore
  const { freeBytes, reserveBytes } = await readDiskRoom(folder, diskReserveBytes)
  return freeBytes < reserveBytes
    ? withoutRoom(name, `${folder}, ${gibibytes(freeBytes)} free`, reserveBytes)
    : null
}

const blobsChecked = 1_000
const atOnce = 16

/** Returns the newest blobs that rows name and the store lacks. */
async function findMissingBlobs(blobs: Blobs, db: Db): Promise<string[]> {
  const missing: string[] = []
  const keys = (await findNewestBlobs(db, blobsChecked)).values()
  const askNext = async () => {
    for (const key of keys) if (!(await blobs.has(key))) missing.push(key)
  }
  await Promise.all(Array.from({ length: atOnce }, askNext))
  // A blob deleted in the meantime is not missing.
  const stillNamed = await findRawIds(db, missing)
  return missing.filter((key) => stillNamed.has(key))
}
