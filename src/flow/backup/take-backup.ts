// Makes a backup while mail flows: one snapshot of all tables, its blobs, and the sealed secret key.
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import type { PoolClient } from 'pg'
import { StartRefused } from '../../base/errors.ts'
import { newUuid } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { copyOut } from '../../postgres/copy.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { type AppliedMigration, readApplied } from '../../postgres/migrate.ts'
import {
  type CopiedSequence,
  type CopiedTable,
  copyText,
  listSequences,
  listTables,
  lockText,
} from '../../postgres/tables.ts'
import { lockBackup } from '../../store/backups.ts'
import { beginFolder, finishFolder, names, tableFile } from './backup-folder.ts'
import { writeChecked } from './checked-files.ts'
import { copyBlobs } from './copy-blobs.ts'
import { leftOut } from './left-out.ts'
import { type CheckedFile, format, formatVersion, type Manifest, type TableFile } from './manifest.ts'
import { ProgressReporter } from './progress-reporter.ts'
import { sealKeys } from './sealed-key.ts'

export interface BackupDeps {
  db: Db
  blobs: Blobs
  /** Receives the progress of long work, in words for people. */
  progress(line: string): void
}

export interface BackupInput {
  folder: string
  /** The release that makes the backup. */
  version: string
  /** Null: the key is kept elsewhere. */
  key: { keys: readonly Buffer[]; passphrase: string } | null
}

/**
 * Makes a backup in the folder. It contains everything committed before this call. While its lock is held, no blob is
 * deleted, so every blob that the snapshot names exists. The manifest comes last: without it there is no backup.
 */
export async function takeBackup(deps: BackupDeps, input: BackupInput): Promise<Manifest> {
  const { folder, version } = input
  const lock = await lockBackup(deps.db)
  if (!lock) throw refused('another backup of this database is running', 'wait until it ends')
  try {
    const id = newUuid()
    await beginFolder(folder, id)
    const key = await storeKey(input, id)
    const snapshot = await copySnapshot(deps, folder)
    const blobs = await copyBlobs(deps, folder)
    if (blobs.missing.length > 0) await requireStore(deps)
    if (!(await lock.isHeld()))
      throw refused('the connection to the database was lost during the backup', 'make the backup again')
    const manifest: Manifest = {
      format,
      formatVersion,
      id,
      posthorn: version,
      postgres: snapshot.postgres,
      takenAt: snapshot.takenAt,
      finishedAt: new Date().toISOString(),
      migrations: snapshot.migrations,
      tables: snapshot.tables,
      leftOut,
      sequences: snapshot.sequences,
      blobs,
      key,
    }
    await finishFolder(folder, manifest)
    return manifest
  } catch (error) {
    throw isFileFault(error)
      ? refused(
          `the backup cannot be written (${error.message})`,
          'free disk space there, or name another folder',
        )
      : error
  } finally {
    lock.release()
  }
}

/** Refuses a store that is not ours or does not answer: it cannot say that a blob is missing. */
async function requireStore({ blobs }: Pick<BackupDeps, 'blobs'>): Promise<void> {
  const fault = await blobs.findFault()
  if (fault !== null) throw refused(fault, 'mount its disk, or set POSTHORN_BLOB_URL as the service has it')
}

async function storeKey({ folder, key }: BackupInput, id: string): Promise<CheckedFile | null> {
  if (!key) return null
  const text = await sealKeys(key.keys, key.passphrase, id)
  return await writeChecked(join(folder, names.key), piecesOf(text))
}

async function* piecesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text)
}

interface Snapshot {
  postgres: string
  takenAt: string
  migrations: AppliedMigration[]
  tables: TableFile[]
  sequences: CopiedSequence[]
}

/** All tables at one moment, and the keys of the blobs that they name. */
async function copySnapshot({ db, progress }: BackupDeps, folder: string): Promise<Snapshot> {
  const tables = await listTables(db)
  return await db.longTransaction('begin isolation level repeatable read read only', async (tx, client) => {
    // The first query takes the snapshot. The locks come before it, so that the tables' structure cannot change.
    await client.query(lockText(tables))
    const [now] = await tx.query<{ at: Date; postgres: string }>(
      `select clock_timestamp() as at, current_setting('server_version') as postgres`,
    )
    await requireSame(tx, tables)
    const copied: TableFile[] = []
    for (const table of tables.filter(({ name }) => !(name in leftOut)))
      copied.push(await copyTable(client, table, { folder, progress }))
    const wanted = copyOut(client, 'copy (select blob from raw where blob is not null order by id) to stdout')
    await writeChecked(join(folder, names.wantedBlobs), wanted.pieces)
    return {
      postgres: now!.postgres,
      takenAt: now!.at.toISOString(),
      tables: copied,
      migrations: await readApplied(client),
      sequences: await listSequences(tx),
    }
  })
}

async function requireSame(tx: Tx, tables: CopiedTable[]): Promise<void> {
  if (JSON.stringify(await listTables(tx)) !== JSON.stringify(tables))
    throw refused('the schema was updated during the backup', 'make the backup again')
}

async function copyTable(
  client: PoolClient,
  table: CopiedTable,
  { folder, progress }: { folder: string } & Pick<BackupDeps, 'progress'>,
): Promise<TableFile> {
  const { pieces, rowCount } = copyOut(client, copyText(table, 'to stdout'))
  const reporter = new ProgressReporter(progress)
  let file: CheckedFile | undefined
  await pipeline(
    reporter.through(pieces, (readBytes) => `table ${table.name}: ${readBytes} read`),
    createZstdCompress(),
    async (packed) => {
      file = await writeChecked(join(folder, tableFile(table.name)), packed)
    },
  )
  return { ...table, rows: rowCount(), ...file! }
}

function isFileFault(error: unknown): error is NodeJS.ErrnoException {
  const { code, syscall } = error as NodeJS.ErrnoException
  return (
    error instanceof Error && typeof code === 'string' && typeof syscall === 'string' && syscall !== 'connect'
  )
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('backup', reason, mend)
}
