// Opens what every role needs: the data folder, the secret key, the database with its schema and its clock, the blobs.
import { constants } from 'node:fs'
import { access, mkdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Clock } from './base/clock.ts'
import { StartRefused } from './base/errors.ts'
import type { Log } from './base/log.ts'
import type { SecretBox } from './base/secret-box.ts'
import { divided } from './base/share.ts'
import { syncFolder } from './base/sync-folder.ts'
import type { Blobs } from './blobs/blobs.ts'
import { openBlobs } from './blobs/open-blobs.ts'
import { type DeliveryRules, readDeliveryFile } from './config/delivery-file.ts'
import type { Settings } from './config/settings.ts'
import { DnsCache } from './dns/cache.ts'
import { Resolver } from './dns/resolver.ts'
import { SharedResolver } from './dns/shared-resolver.ts'
import { trustedResolvers } from './dns/trusted-resolvers.ts'
import { findHold } from './flow/backup/release-copy.ts'
import { requireNoMark } from './flow/backup/restore-mark.ts'
import { claimBlobFolder } from './flow/claim-blob-folder.ts'
import { knowingLocalhost } from './flow/domains/localhost-records.ts'
import { readKeyFile } from './flow/secrets/key-file.ts'
import { settleSecretKey } from './flow/secrets/secret-key.ts'
import { type OwnWorker, onlyWorker } from './own-worker.ts'
import { Db, DbFault } from './postgres/db.ts'
import { useEmbedded } from './postgres/embedded/use-embedded.ts'
import { hasSchema, migrate } from './postgres/migrate.ts'
import { requireUsable } from './postgres/requirements.ts'
import { readDatabaseId } from './store/database-identity.ts'
import type { RestorationRow } from './store/restorations.ts'

export interface Foundation {
  settings: Settings
  log: Log
  db: Db
  clock: Clock
  secretBox: SecretBox
  blobs: Blobs
  /**
   * Caches DNS answers for the checks of received mail. Domain verification and delivery use other resolvers, which cache
   * nothing.
   */
  dnsCache: DnsCache
  /** Lookups of names that customers choose, with shares by organization. */
  resolver: SharedResolver
  /**
   * Set in a restored copy that was not released when this was opened, otherwise null. Nothing leaves such a copy:
   * `settings.delivery` is `capture`, and earlier mail and webhook calls keep waiting.
   */
  hold: RestorationRow | null
  worker: OwnWorker
  /**
   * Returns the limits of destinations, and the pools of source addresses. In a command, throws the SettingError of a file
   * that cannot be used. A command that needs no rules, such as a pause, works with such a file.
   */
  deliveryRules(): DeliveryRules
  close(): Promise<void>
}

type Progress = (line: string) => void

const clockIntervalMs = 60_000
const wholePool = 16
/** Two of them hold the locks of a node. With fewer, transactions of a worker would wait for each other. */
const leastPool = 8
/** A sender waits while its mail is checked, so these lookups give up sooner than those of a delivery. */
const checkPatience = { timeoutMs: 2_500, tries: 2, deadlineMs: 8_000 }

/**
 * Opens everything and creates what is missing: the data folder, the embedded PostgreSQL if no other is configured, the
 * schema, the secret key. `progress` receives a line for each slow step. Refuses to start on anything unreliable.
 */
export async function openFoundation(
  settings: Settings,
  log: Log,
  progress: Progress,
  worker = onlyWorker,
): Promise<Foundation> {
  await makeFolder({ about: 'data folder', setting: 'POSTHORN_DATA_DIR', folder: settings.dataDir })
  if ('folder' in settings.blobStore)
    await makeFolder({ about: 'blobs', setting: 'POSTHORN_BLOB_URL', folder: settings.blobStore.folder })
  return { ...(await open(settings, log, progress, 'made')), worker }
}

/** Opens only what exists: a command in the wrong folder must neither leave a database behind nor show an empty one. */
export async function openExisting(settings: Settings, log: Log, progress: Progress): Promise<Foundation> {
  await requireFolder(settings)
  return { ...(await open(settings, log, progress, 'found')), worker: onlyWorker }
}

interface OwnFolder {
  about: string
  setting: string
  folder: string
}

/** Makes the folder if it is missing. Refuses a folder that this user cannot make or write. */
async function makeFolder({ about, setting, folder }: OwnFolder): Promise<void> {
  const first = await makeBelow(folder).catch(({ code }) => {
    const mend = `let this user create it, or set ${setting} to another folder`
    throw new StartRefused(about, `${folder} cannot be created (${code})`, mend)
  })
  if (first) await syncFolder(dirname(first))
  const { R_OK, W_OK, X_OK } = constants
  await access(folder, R_OK | W_OK | X_OK).catch(({ code }) => {
    const mend = `let this user read and write it, or set ${setting} to another folder`
    throw new StartRefused(about, `${folder} cannot be used (${code})`, mend)
  })
}

/**
 * Makes the folder and its missing parents. Returns the topmost folder that it made, or null.
 * QUIRK: Node's own recursive `mkdir` never ends below /proc, where a missing folder cannot be made.
 */
async function makeBelow(folder: string): Promise<string | null> {
  try {
    await mkdir(folder, { mode: 0o700 })
    return folder
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return null
    if (code !== 'ENOENT' || dirname(folder) === folder) throw error
  }
  const first = await makeBelow(dirname(folder))
  await mkdir(folder, { mode: 0o700 })
  return first ?? folder
}

/** The parts that need no secret key: the database with its schema and its clock. */
export type Unopened = Pick<Foundation, 'settings' | 'db' | 'clock' | 'close'>

/** Opens only these parts, for an operator who has lost the key. */
export async function openWithoutKey(settings: Settings, log: Log, progress: Progress): Promise<Unopened> {
  await requireFolder({ ...settings, mayMakeSecretKey: true })
  const { db, release } = await openDatabase(settings, log, progress)
  const leave = async () => {
    await db.close()
    await release()
  }
  try {
    await requireUsable(db)
    await requireSchema(db)
    await migrate(db, log)
    const { clock, stop } = await startClock(db)
    const close = async () => {
      stop()
      await leave()
    }
    return { settings, db, clock, close }
  } catch (error) {
    await leave()
    throw error
  }
}

/** Requires no folder if the database and the key both come from elsewhere. */
async function requireFolder({ dataDir, databaseUrl, mayMakeSecretKey }: Settings): Promise<void> {
  const needed = databaseUrl ? dataDir : join(dataDir, 'postgres/cluster')
  if ((databaseUrl && !mayMakeSecretKey) || (await stat(needed).catch(() => null))) return
  const reason = `there is no data folder at ${dataDir}`
  throw new StartRefused(
    'data folder',
    reason,
    'change to the folder of the service, or set POSTHORN_DATA_DIR; posthorn serve creates a new one',
  )
}

async function open(
  settings: Settings,
  log: Log,
  progress: Progress,
  missing: 'made' | 'found',
): Promise<Omit<Foundation, 'worker'>> {
  await requireNoMark(settings.dataDir)
  const deliveryRules = await readDeliveryFile(settings).then(
    (rules) => () => rules,
    (error) => () => {
      throw error
    },
  )
  if (missing === 'made') deliveryRules()
  const keys = await readKeys(settings)
  const { db, release } = await openDatabase(settings, log, progress)
  const leave = async () => {
    await db.close()
    await release()
  }
  try {
    await prepareDatabase(db, settings, log, missing)
    const { secretKeyFile: file, mayMakeSecretKey } = settings
    const mayMake = mayMakeSecretKey && missing === 'made'
    const secretBox = await settleSecretKey({ db }, { file, keys, mayMake })
    const { clock, stop } = await startClock(db)
    const close = async () => {
      stop()
      await leave()
    }
    const blobs = await openBlobs({
      store: settings.blobStore,
      scratchFolder: settings.dataDir,
      databaseId: await readDatabaseId(db),
    })
    if (missing === 'made') await markFolder({ db, blobs, log })
    const hold = await findHold(db)
    const resolver = new Resolver({
      servers: settings.dnsServers,
      isTrusted: trustedResolvers(settings.dnsTrusted),
    })
    return {
      settings: hold ? { ...settings, delivery: 'capture' } : settings,
      hold,
      log,
      db,
      clock,
      secretBox,
      blobs,
      dnsCache: createDnsCache(resolver, settings, db, clock),
      resolver: new SharedResolver({ resolver, workers: settings.workers }),
      deliveryRules,
      close,
    }
  } catch (error) {
    await leave()
    throw error
  }
}

/** Locks are waited for as long as a statement may take, so either limit may end the wait. */
const [lockTimedOut, statementEnded] = ['55P03', '57014']

/** Refuses a database that cannot be used. If the operator named it, the error names the setting. */
async function prepareDatabase(
  db: Db,
  { databaseUrl }: Settings,
  log: Log,
  missing: 'made' | 'found',
): Promise<void> {
  try {
    await requireUsable(db)
    if (missing === 'found') await requireSchema(db)
    await migrate(db, log)
  } catch (error) {
    if ([lockTimedOut, statementEnded].includes((error as { code?: string }).code!))
      throw new StartRefused(
        'database',
        `the schema cannot be updated: ${(error as Error).message}`,
        'if a vacuum or another command holds a table, wait until it ends (pg_stat_activity)',
      )
    if (databaseUrl === null || !(error instanceof DbFault)) throw error
    const [reason] = error.message.split('\n', 1)
    throw new StartRefused(
      'database',
      `the database of POSTHORN_DATABASE_URL: ${reason}`,
      'check that the URL is right and the server runs',
    )
  }
}

/** A disk that takes no file, such as a full one, does not prevent the start. The folder is marked once there is room. */
async function markFolder({ db, blobs, log }: Pick<Foundation, 'db' | 'blobs' | 'log'>): Promise<void> {
  await claimBlobFolder({ db, blobs }).catch((err) => {
    if (err instanceof DbFault) throw err
    log.warn({ err }, 'blob store could not be marked: large mail is refused until it is')
  })
}

/** Its lookups have separate shares, by the client's network. */
function createDnsCache(
  resolver: Resolver,
  { managedDomain, workers }: Settings,
  db: Db,
  clock: Clock,
): DnsCache {
  const hasty: Pick<Resolver, 'resolve'> = {
    resolve: (type, name) => resolver.resolve(type, name, checkPatience),
  }
  return new DnsCache({
    resolver: knowingLocalhost(hasty, { db, managedDomain }),
    clock,
    workers,
  })
}

/** Never creates a file that the operator named: if it is missing, a secret was not mounted. */
async function readKeys({ secretKeyFile, mayMakeSecretKey }: Settings): Promise<Buffer[] | null> {
  const keys = await readKeyFile(secretKeyFile)
  if (keys || mayMakeSecretKey) return keys
  const mend = `put the secret key there; for a new database, create one: openssl rand -hex 32 > ${secretKeyFile}`
  throw new StartRefused('secret key', `POSTHORN_SECRET_KEY_FILE=${secretKeyFile} does not exist`, mend)
}

async function requireSchema(db: Db): Promise<void> {
  if (await hasSchema(db)) return
  throw new StartRefused(
    'database',
    'the database has no tables of Posthorn',
    'check that POSTHORN_DATABASE_URL is right; posthorn serve and posthorn migrate create them',
  )
}

/** Connects to the configured database, or to our own PostgreSQL, made if missing. Leaves the schema as it is. */
export async function openDatabase(settings: Settings, log: Log, progress: Progress) {
  const maxConnections = divided(wholePool, settings.workers, leastPool)
  if (settings.databaseUrl) {
    const db = new Db({ connection: { connectionString: settings.databaseUrl }, maxConnections })
    return { db, release: async () => {} }
  }
  const embedded = await useEmbedded({ directory: `${settings.dataDir}/postgres`, log, progress })
  return {
    db: new Db({ connection: embedded.connection, maxConnections }),
    release: () => embedded.release(),
  }
}

/** Starts a clock that the database sets now and every minute. */
async function startClock(db: Db): Promise<{ clock: Clock; stop(): void }> {
  const clock = new Clock()
  await synchronize(clock, db)
  const timer = setInterval(() => void synchronize(clock, db).catch(() => {}), clockIntervalMs) // the old offset stays
  timer.unref()
  return { clock, stop: () => clearInterval(timer) }
}

/** Sets the clock to the database's time, taken in the middle of the round trip. */
async function synchronize(clock: Clock, db: Db): Promise<void> {
  const askedMs = performance.now()
  const [row] = await db.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  )
  clock.synchronize(row!.ms, (askedMs + performance.now()) / 2)
}
