// Runs the doctor's checks in order and reports each as it completes, inside a running service or from outside.
import { Clock } from '../../base/clock.ts'
import { StartRefused } from '../../base/errors.ts'
import { silentLog } from '../../base/log.ts'
import { readDeliveryFile } from '../../config/delivery-file.ts'
import { findExposures } from '../../config/exposure.ts'
import { SettingError } from '../../config/setting-reader.ts'
import type { Settings } from '../../config/settings.ts'
import { Resolver } from '../../dns/resolver.ts'
import { trustedResolvers } from '../../dns/trusted-resolvers.ts'
import { listManagedKeys, loadSigningKeys } from '../../flow/domains/managed-keys.ts'
import type { SourcePool } from '../../flow/source-pools.ts'
import { type Foundation, openExisting } from '../../foundation.ts'
import { pagesFolder } from '../../web/pages-folder.ts'
import { loadSettings, type OutputOptions, remark } from '../context.ts'
import { checkOrdered } from './acme.ts'
import { checkBlobs } from './blobs.ts'
import { checkBlocklists } from './blocklists.ts'
import {
  type Check,
  checkCertificate,
  checkDatabase,
  checkFolder,
  checkInboxes,
  checkListeners,
  checkNodes,
  checkPages,
  checkWorkers,
  failed,
  noteClaim,
  ok,
  skipped,
  warning,
} from './checks.ts'
import { checkClamd } from './clamd.ts'
import { checkDmarcReports, checkTlsReports } from './daily-reports.ts'
import { checkRecords, expectedRecords, type ManagedDomain } from './dns.ts'
import { checkDnssec } from './dnssec.ts'
import { checkHold } from './hold.ts'
import { checkOperatorMail, describeRequestMail } from './operator-mail.ts'
import { checkNames, checkOutbound, checkWayOut } from './outbound.ts'
import { checkOwnSources, checkSourceNames } from './pools.ts'
import { checkRspamd } from './rspamd.ts'
import { checkSecretKey } from './secret-key.ts'
import { checkUpkeep } from './upkeep.ts'

export interface Findings {
  checks: Check[]
  /** The records to publish; null if the settings or the database cannot be read. */
  managedDomain: ManagedDomain | null
}

type Found = (...checks: Check[]) => void

/** Runs every check from outside, whether a service runs or not. */
export async function examine(options: OutputOptions): Promise<Findings> {
  const settings = readable(options)
  if (settings instanceof SettingError)
    return {
      checks: [failed('settings', settings.message, 'correct it in the environment or in .env')],
      managedDomain: null,
    }
  const { checks: local, managedDomain } = await examineStore(settings, options)
  const checks = [describeSettings(settings), ...local]
  await examineAround(settings, managedDomain, (...found) => void checks.push(...found))
  // In the wrong folder or without its .env, the other checks say nothing about the intended service.
  checks.sort((a, b) => Number(isNoFolder(b)) - Number(isNoFolder(a)))
  return { checks, managedDomain }
}

/** Runs every check inside a running service, on its own foundation. `found` receives each check as it completes. */
export async function examineRunning(foundation: Foundation, found: Found): Promise<void> {
  const { settings } = foundation
  found(describeSettings(settings))
  const managedDomain = await examineFoundation(foundation, await checkFolder(settings), found)
  await examineAround(settings, managedDomain, found)
}

/** Checks listeners, certificate, DNS, outbound mail and the scanners. */
async function examineAround(
  settings: Settings,
  managedDomain: ManagedDomain | null,
  found: Found,
): Promise<void> {
  found(describeRequestMail(settings))
  found(...findExposures(settings).map(({ detail, mend }) => warning('exposure', detail, mend)))
  found(...(await checkListeners(settings)), checkPages(settings, pagesFolder))
  if (!settings.acme) found(await checkCertificate(settings, new Date()))
  found(...(await examineWorld(settings, managedDomain)))
  found(await checkClamd(settings))
  found(await checkRspamd(settings))
}

function isNoFolder({ name, status }: Check): boolean {
  return name === 'data folder' && status === 'failed'
}

function readable(options: OutputOptions): Settings | SettingError {
  try {
    return loadSettings(options)
  } catch (error) {
    if (error instanceof SettingError) return error
    throw error
  }
}

function describeSettings({ isDevelopment, delivery, mailHost, managedDomain }: Settings): Check {
  const mode = isDevelopment ? 'development (POSTHORN_MAIL_HOST is unset)' : `mail host ${mailHost}`
  return ok('settings', `${mode}, managed domain ${managedDomain}, delivery ${delivery}`)
}

/** Checks the folder, the database, the blobs and the keys. */
async function examineStore(settings: Settings, options: OutputOptions): Promise<Findings> {
  const folder = await checkFolder(settings)
  if (folder.status === 'failed') return { checks: [folder], managedDomain: null }
  let foundation: Foundation
  try {
    foundation = await openExisting(settings, silentLog, (line) => remark(options, line))
  } catch (error) {
    if (error instanceof StartRefused) return refusedStart(error, folder)
    // A fault of the database stops the service too. Its own message explains more than ours could.
    const mend = settings.databaseUrl
      ? 'check that POSTHORN_DATABASE_URL is right and the server runs'
      : `follow the message; PostgreSQL's own log is ${settings.dataDir}/postgres/log`
    return { checks: [folder, failed('database', (error as Error).message, mend)], managedDomain: null }
  }
  try {
    const checks: Check[] = []
    const managedDomain = await examineFoundation(
      foundation,
      folder,
      (...found) => void checks.push(...found),
    )
    return { checks, managedDomain }
  } finally {
    await foundation.close()
  }
}

/** Returns the records that the managed domain must publish. */
async function examineFoundation(
  foundation: Foundation,
  folder: Check,
  found: Found,
): Promise<ManagedDomain> {
  const { settings, db, blobs } = foundation
  // It may create the key that must be published.
  const signing = await checkSigning(foundation)
  found(await noteClaim(folder, db, settings))
  found(await checkDatabase(db, settings), ...(await checkUpkeep(db)))
  found(...(await checkHold(foundation)))
  found(await checkBlobs(blobs, db, settings), await checkSecretKey(foundation), signing)
  found(await checkInboxes(db, settings), await checkNodes(db, settings), await checkWorkers(db, settings))
  found(...(await checkDmarcReports(foundation)), ...(await checkTlsReports(foundation)))
  found(await checkOperatorMail(db))
  if (settings.acme) found(await checkOrdered(foundation))
  return expectedRecords(settings, await listManagedKeys(db, settings.managedDomain))
}

/** Reports why the service would refuse to start. Without a data folder no other check matters. */
function refusedStart({ about, reason, mend }: StartRefused, folder: Check): Findings {
  const refusal = failed(about, reason, mend)
  return { checks: about === folder.name ? [refusal] : [folder, refusal], managedDomain: null }
}

/** Whether the keys in the database open. The first check creates a key. */
async function checkSigning(foundation: Foundation): Promise<Check> {
  const name = 'signing key'
  const { managedDomain, secretKeyFile } = foundation.settings
  try {
    const keys = await loadSigningKeys(foundation, managedDomain)
    const known = await listManagedKeys(foundation.db, managedDomain)
    const waiting = known.filter(({ state }) => state === 'pending').map(({ selector }) => selector)
    const signs = `${keys.map(({ selector }) => selector).join(', ')} of ${managedDomain} can be opened`
    return ok(name, waiting.length > 0 ? `${signs}; waiting to be published: ${waiting.join(', ')}` : signs)
  } catch (error) {
    // A key that does not open was sealed with another secret key. Faults of the database arrive here too.
    return failed(name, (error as Error).message, `restore the secret key that sealed it (${secretKeyFile})`)
  }
}

/** The pools of direct delivery, and the mistake in their file, which stops a start. */
async function findPools(settings: Settings): Promise<{ pools: readonly SourcePool[]; mistakes: Check[] }> {
  return await readDeliveryFile(settings).then(
    ({ pools }) => ({ pools: settings.delivery === 'direct' ? pools : [], mistakes: [] }),
    ({ message }) => ({ pools: [], mistakes: [failed('settings', message, 'correct the file')] }),
  )
}

/** Checks DNS and outbound mail. */
async function examineWorld(settings: Settings, managedDomain: ManagedDomain | null): Promise<Check[]> {
  const isTrusted = trustedResolvers(settings.dnsTrusted)
  const resolver = new Resolver({ servers: settings.dnsServers, isTrusted, timeoutMs: 2_000, tries: 2 })
  const lists = await checkBlocklists(settings, (type, name) => resolver.resolve(type, name))
  const { pools, mistakes } = await findPools(settings)
  const bound = [...mistakes, ...(await checkOutbound(settings)), ...(await checkOwnSources(pools))]
  const leaving = [...bound, ...(await checkWayOut(settings, resolver))]
  const around = [...leaving, await checkDnssec(settings, resolver), ...lists]
  if (settings.isDevelopment) return [skipped('DNS', 'development needs no records'), ...around]
  if (!managedDomain) return [skipped('DNS', 'the records cannot be checked without the database'), ...around]
  const names = settings.delivery === 'direct' ? await checkNames(settings, resolver) : []
  const world = { settings, resolver, clock: new Clock(), pools }
  return [
    ...[...(await checkRecords(managedDomain, resolver)), ...names, ...(await checkSourceNames(world))],
    ...around,
  ]
}
