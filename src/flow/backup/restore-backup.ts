// Restores a backup into an empty data folder and an empty database: completely or not at all, and on hold until released.
import { mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import type { PoolClient } from 'pg'
import { StartRefused } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { syncFolder } from '../../base/sync-folder.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { copyIn } from '../../postgres/copy.ts'
import type { Db, Queryable } from '../../postgres/db.ts'
import {
  finishMigrations,
  hasSchema,
  listPending,
  lockSchema,
  MigrationError,
  repeatMigrations,
} from '../../postgres/migrate.ts'
import {
  copyText,
  dropForeignKeys,
  isEmptyDatabase,
  setSequence,
  truncateTables,
} from '../../postgres/tables.ts'
import { readDatabaseId } from '../../store/database-identity.ts'
import { renumberOutbox } from '../../store/events/outbox.ts'
import { findRestoration, insertRestoration } from '../../store/restorations.ts'
import { readKeyState } from '../../store/secret-keys.ts'
import { readKeyFile } from '../secrets/key-file.ts'
import { requireMatching } from '../secrets/secret-key.ts'
import { blobFile, names, readManifest, tableFile, writeFlushed } from './backup-folder.ts'
import { checkFile, damaged, readChecked, readFileBytes } from './checked-files.ts'
import { inGroups, readRecords } from './copy-blobs.ts'
import type { BlobRecord, CheckedFile, Manifest, TableFile } from './manifest.ts'
import { formatBytes, ProgressReporter } from './progress-reporter.ts'
import { findMark, leaveMark, type RestoreMark, removeMark } from './restore-mark.ts'
import { openKeys } from './sealed-key.ts'

export interface RestoreDeps {
  dataDir: string
  secretKeyFile: string
  blobs: Blobs
  log: Log
  progress(line: string): void
  /** Opens the database. Creates it first if it is our own. */
  openDatabase(): Promise<{ db: Db; release(): Promise<void> }>
}

export interface RestoreInput {
  folder: string
  /** Called only if the backup's key is needed. */
  askPassphrase(): Promise<string>
}

/**
 * Restores the whole backup and checks every file's checksum. Refuses to overwrite existing data. Blobs and key come first.
 * The tables come last, in one transaction: before its commit there is no database. After an interruption no service starts,
 * and the same restore resumes when run again.
 */
export async function restoreBackup(
  deps: RestoreDeps,
  { folder, askPassphrase }: RestoreInput,
): Promise<Manifest> {
  const manifest = await requireManifest(folder)
  requireKnown(manifest)
  const mark = await findMark(deps.dataDir)
  if (mark?.backupId !== manifest.id) await requireEmptyFolders(deps, mark)
  // The restored database has the id of the original, whose store must not be taken for the copy's.
  else if (mark.store !== deps.blobs.location) throw anotherStore(deps.blobs)
  const key = await findKey(deps, { folder, manifest, askPassphrase })
  await leaveMark(deps.dataDir, { backupId: manifest.id, store: deps.blobs.location })
  const { db, release } = await deps.openDatabase()
  try {
    // Everything is there if only the last steps of the restore were missing.
    if (mark !== null && (await isLoaded(db, manifest))) {
      const owner = await deps.blobs.owner()
      if (owner !== manifest.id && owner !== (await readDatabaseId(db))) throw anotherStore(deps.blobs)
    } else {
      await requireEmpty(db).catch(async (refusal) => {
        if (mark === null) await removeMark(deps.dataDir)
        throw refusal
      })
      await markStore(deps.blobs, manifest.id)
      await restoreBlobs(deps, folder, manifest)
      await storeKey(deps.secretKeyFile, key)
      await restoreTables({ ...deps, db }, folder, { manifest, key })
    }
    await deps.blobs.claim(await readDatabaseId(db))
    await db.longTransaction('begin', (tx) => tx.query('analyze'))
  } finally {
    await release()
  }
  await removeMark(deps.dataDir)
  return manifest
}

/** The store has the mark of the backup until it belongs to the database. */
async function markStore(blobs: Blobs, backupId: string): Promise<void> {
  if ((await blobs.owner()) === backupId) return
  if ((await blobs.findContent()) !== null) throw anotherStore(blobs)
  await blobs.claim(backupId)
}

function anotherStore({ location }: Blobs): StartRefused {
  return refused(
    `the interrupted restore used another blob store than ${location}`,
    'set POSTHORN_BLOB_URL as it was, or start again with an empty data folder, database and blob store',
  )
}

async function requireManifest(folder: string): Promise<Manifest> {
  const read = await readManifest(folder)
  if ('fault' in read) throw refused(read.fault, 'nothing was restored; name another backup')
  return read.manifest
}

/** Accepts backups of older releases, which are migrated. Refuses those of newer releases, whose schema is unknown here. */
function requireKnown({ migrations, posthorn }: Manifest): void {
  try {
    listPending(migrations)
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error
    throw refused(
      `the schema of the backup is newer than this release (Posthorn ${posthorn} made it)`,
      'restore it with that release',
    )
  }
}

/** Only the key may exist already, for a backup without it. */
const mayBeThere = new Set(['lost+found', 'folder-id'])

async function requireEmptyFolders(
  { dataDir, blobs, secretKeyFile }: RestoreDeps,
  mark: RestoreMark | null,
): Promise<void> {
  if (mark !== null)
    throw refused(`${dataDir} has an interrupted restore of another backup`, 'empty the folder first')
  const found = await readdir(dataDir).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const own = found.filter((name) => !mayBeThere.has(name) && join(dataDir, name) !== secretKeyFile)
  // If the blob folder is inside the data folder, it is checked as a store of its own.
  const filled = own.find((name) => join(dataDir, name) !== blobs.location)
  for (const [store, name] of [
    [dataDir, filled],
    [blobs.location, await blobs.findContent()],
  ])
    if (name)
      throw refused(`${store} is not empty (${name})`, 'restore into an empty one: nothing is overwritten')
}

interface Key {
  /** One key, or several if the backup was made while the key was being changed. */
  keys: readonly Buffer[]
  /** Whether the key file existed already. */
  isStored: boolean
}

/** The existing key, or else that of the backup. */
async function findKey(
  { secretKeyFile }: RestoreDeps,
  { folder, manifest, askPassphrase }: RestoreInput & { manifest: Manifest },
): Promise<Key> {
  const own = await readKeyFile(secretKeyFile)
  if (own) return { keys: own, isStored: true }
  if (!manifest.key)
    throw refused(
      'the backup was made without the secret key',
      `put the key of the original into ${secretKeyFile} first`,
    )
  const pieces: Buffer[] = []
  for await (const piece of readChecked(join(folder, names.key), names.key, manifest.key)) pieces.push(piece)
  const text = Buffer.concat(pieces).toString('utf8')
  return { keys: await openKeys(text, await askPassphrase(), manifest.id), isStored: false }
}

async function storeKey(file: string, { keys, isStored }: Key): Promise<void> {
  if (isStored) return
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFlushed(file, keys.map((key) => `${key.toString('hex')}\n`).join(''))
  await syncFolder(dirname(file))
}

/** Whether the database already contains this whole backup. */
async function isLoaded(db: Db, { id }: Manifest): Promise<boolean> {
  return (await hasSchema(db)) && (await findRestoration(db))?.backupId === id
}

async function requireEmpty(db: Queryable): Promise<void> {
  if (await isEmptyDatabase(db)) return
  throw refused('the database is not empty', 'restore into an empty database: nothing is overwritten')
}

async function restoreBlobs(
  { blobs, progress }: RestoreDeps,
  folder: string,
  { blobs: { list, count } }: Manifest,
): Promise<void> {
  const reporter = new ProgressReporter(progress)
  let restored = 0
  const restore = (record: BlobRecord) =>
    blobs.put(record.key, readNamed(folder, blobFile(record.key), record))
  const path = join(folder, names.blobList)
  // No line of a damaged list can be trusted.
  if ((await checkFile(path))?.sha256 !== list.sha256) throw damaged(names.blobList)
  for await (const group of inGroups(readRecords(readFileBytes(path)), atOnce)) {
    for (const { key } of group) if (!isUuid.test(key)) throw damaged(names.blobList)
    await Promise.all(group.map(restore))
    restored += group.length
    reporter.say(() => `blobs: ${restored} of ${count}`)
  }
}

const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const atOnce = 4

async function* readNamed(folder: string, name: string, expected: CheckedFile): AsyncGenerator<Buffer> {
  try {
    yield* readChecked(join(folder, name), name, expected)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw damaged(name)
    throw error
  }
}

/** Restores the tables, applies later migrations and marks the copy as on hold, in one transaction. */
async function restoreTables(
  deps: RestoreDeps & { db: Db },
  folder: string,
  { manifest, key }: { manifest: Manifest; key: Key },
): Promise<void> {
  const { db, log, secretKeyFile: file } = deps
  await db.longTransaction('begin', async (tx, client) => {
    await lockSchema(client)
    await requireEmpty(tx)
    await repeatMigrations(client, manifest.migrations)
    const constraints = await dropForeignKeys(client)
    await truncateTables(tx, manifest.tables)
    for (const table of manifest.tables)
      await restoreTable(client, table, { folder, progress: deps.progress })
    for (const sequence of manifest.sequences) await setSequence(tx, sequence)
    for (const constraint of constraints) await tx.query(constraint)
    await finishMigrations(client, manifest.migrations, log)
    const state = await readKeyState(tx)
    if (state.current) requireMatching(state, { file, keys: key.keys })
    await insertRestoration(tx, {
      backupId: manifest.id,
      takenAt: new Date(manifest.takenAt),
      restoredAt: new Date(),
    })
    await renumberOutbox(tx)
  })
}

async function restoreTable(
  client: PoolClient,
  table: TableFile,
  { folder, progress }: { folder: string } & Pick<RestoreDeps, 'progress'>,
): Promise<void> {
  const name = tableFile(table.name)
  const reporter = new ProgressReporter(progress)
  const packed = reporter.through(
    readNamed(folder, name, table),
    (read) => `table ${table.name}: ${read} of ${formatBytes(table.sizeBytes)}`,
  )
  // The consumer of `rows` receives its errors.
  const rows = pipeline(packed, createZstdDecompress(), () => {})
  try {
    if ((await copyIn(client, copyText(table, 'from stdin'), rows)) !== table.rows) throw damaged(name)
  } catch (error) {
    // Decompression or PostgreSQL may notice damage before the last byte is read.
    const found = await checkFile(join(folder, name))
    throw found?.sha256 === table.sha256 ? error : damaged(name)
  }
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('backup', reason, mend)
}
