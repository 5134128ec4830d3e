// What everything stands on: the data folder, the secret key, the database with its schema and its clock, the blobs.
import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Clock } from './base/clock.ts'
import type { Log } from './base/log.ts'
import { SecretBox } from './base/secret-box.ts'
import { DiskBlobs } from './blobs/disk.ts'
import { SettingError, type Settings } from './config.ts'
import { Db } from './store/db.ts'
import { useEmbedded } from './store/embedded/use-embedded.ts'
import { migrate } from './store/migrate.ts'

export interface Foundation {
  settings: Settings
  log: Log
  db: Db
  clock: Clock
  secretBox: SecretBox
  blobs: DiskBlobs
  close(): Promise<void>
}

const clockIntervalMs = 60_000

/** Opens everything; starts the embedded PostgreSQL where none is named. `progress` is told what takes longer. */
export async function openFoundation(
  settings: Settings,
  log: Log,
  progress: (line: string) => void,
): Promise<Foundation> {
  await mkdir(settings.dataDir, { recursive: true, mode: 0o700 })
  await mkdir(settings.blobFolder, { recursive: true, mode: 0o700 })
  const secretBox = new SecretBox(await readSecretKey(settings.secretKeyFile))
  const { db, release } = await openDatabase(settings, log, progress)
  try {
    await migrate(db, log)
    const clock = new Clock()
    await synchronize(clock, db)
    const timer = setInterval(() => void synchronize(clock, db).catch(() => {}), clockIntervalMs) // the old offset stays
    timer.unref()
    const close = async () => {
      clearInterval(timer)
      await db.close()
      await release()
    }
    return { settings, log, db, clock, secretBox, blobs: new DiskBlobs(settings.blobFolder), close }
  } catch (error) {
    await db.close()
    await release()
    throw error
  }
}

async function openDatabase(settings: Settings, log: Log, progress: (line: string) => void) {
  if (settings.databaseUrl) {
    const db = new Db({ connection: { connectionString: settings.databaseUrl } })
    return { db, release: async () => {} }
  }
  const embedded = await useEmbedded({ directory: `${settings.dataDir}/postgres`, log, progress })
  return { db: new Db({ connection: embedded.connection }), release: () => embedded.release() }
}

/** Database time, taken in the middle of the round trip. */
async function synchronize(clock: Clock, db: Db): Promise<void> {
  const askedMs = performance.now()
  const [row] = await db.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  )
  clock.synchronize(row!.ms, (askedMs + performance.now()) / 2)
}

/** The key that seals secrets at rest: 32 bytes, or 64 hex characters; made once, readable by its owner alone. */
async function readSecretKey(file: string): Promise<Buffer> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await makeSecretKey(file)
  const bytes = await readFile(file)
  const text = bytes.toString('latin1').trim()
  if (bytes.length === 32) return bytes
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  throw new SettingError(
    `POSTHORN_SECRET_KEY_FILE=${file} must hold 32 bytes, or 64 hex characters: openssl rand -hex 32`,
  )
}

async function makeSecretKey(file: string): Promise<void> {
  try {
    const created = await open(file, 'wx', 0o600)
    await created.writeFile(randomBytes(32).toString('hex'))
    await created.sync()
    await created.close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
