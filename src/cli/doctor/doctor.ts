// `posthorn doctor`: what is set up, what is not, and how to mend it, one line each.
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { StartRefused } from '../../base/errors.ts'
import { silentLog } from '../../base/log.ts'
import { SettingError } from '../../config/setting-reader.ts'
import type { ListenAddress } from '../../config/setting-values.ts'
import type { Settings } from '../../config/settings.ts'
import { Resolver } from '../../dns/resolver.ts'
import { listSigningRecords, loadSigningKeys } from '../../flow/domains/managed-keys.ts'
import { type Foundation, openExisting } from '../../foundation.ts'
import { loadSettings, type OutputOptions, print } from '../context.ts'
import { checkOrdered } from './acme.ts'
import { checkBlocklists } from './blocklists.ts'
import {
  type Check,
  checkBlobs,
  checkCertificate,
  checkDatabase,
  checkFolder,
  checkInboxes,
  checkListeners,
  failed,
  noteClaim,
  ok,
  skipped,
  tryConnecting,
  warning,
} from './checks.ts'
import { checkClamd } from './clamd.ts'
import { checkDmarcReports } from './dmarc-reports.ts'
import { checkRecords, type ManagedDomain, recordsOf } from './dns.ts'
import { checkRelay } from './relay.ts'
import { checkRspamd } from './rspamd.ts'

const doctorHelp = `
✓ works, ! works but could be better, ✗ does not work, - has nothing to check here. Exit status 1 when there is a ✗.
It may run beside the service. It makes neither data folder nor database (posthorn migrate does), but the DKIM key.
With direct delivery it connects to one mail server of gmail.com, to see whether this network lets port 25 out.`

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('what is set up, what is not, and how to mend it')
    .option('--json', 'print JSON, with the DNS records to publish')
    .addHelpText('after', doctorHelp)
    .action(doctor)
}

async function doctor(options: OutputOptions): Promise<void> {
  const { checks, managedDomain } = await examine()
  const isWell = checks.every(({ status }) => status !== 'failed')
  print(
    options,
    { status: isWell ? 'ok' : 'failed', checks, managedDomain },
    checks.map((check) => formatCheck(check, paint)).join('\n'),
  )
  if (!isWell) process.exitCode = 1
}

interface Findings {
  checks: Check[]
  /** What is to be published; null where the settings or the database cannot be read. */
  managedDomain: ManagedDomain | null
}

async function examine(): Promise<Findings> {
  const settings = readable()
  if (settings instanceof SettingError)
    return {
      checks: [failed('settings', settings.message, 'in the environment or in .env, then ask again')],
      managedDomain: null,
    }
  const { checks: local, managedDomain } = await examineStore(settings)
  const listeners = await checkListeners(settings)
  const certificate = settings.acme ? [] : [await checkCertificate(settings, new Date())]
  const scanners = [await checkClamd(settings), await checkRspamd(settings)]
  const world = await examineWorld(settings, managedDomain)
  const checks = [describeSettings(settings), ...local, ...listeners, ...certificate, ...world, ...scanners]
  // In the wrong folder, and without its .env, none of the others says anything of the service that is meant.
  checks.sort((a, b) => Number(isNoFolder(b)) - Number(isNoFolder(a)))
  return { checks, managedDomain }
}

function isNoFolder({ name, status }: Check): boolean {
  return name === 'data folder' && status === 'failed'
}

function readable(): Settings | SettingError {
  try {
    return loadSettings()
  } catch (error) {
    if (error instanceof SettingError) return error
    throw error
  }
}

function describeSettings({ isDevelopment, delivery, mailHost, managedDomain }: Settings): Check {
  const mode = isDevelopment ? 'development (POSTHORN_MAIL_HOST is unset)' : `mail host ${mailHost}`
  return ok('settings', `${mode}, managed domain ${managedDomain}, delivery ${delivery}`)
}

/** Folder, database, blobs and the keys in it. */
async function examineStore(settings: Settings): Promise<Findings> {
  const folder = await checkFolder(settings)
  if (folder.status === 'failed') return { checks: [folder], managedDomain: null }
  let foundation: Foundation
  try {
    foundation = await openExisting(settings, silentLog, (line) => console.error(line))
  } catch (error) {
    if (error instanceof StartRefused) return refusedStart(error, folder)
    // Whatever hinders the database hinders the service: its own words say more than ours could.
    const mend = settings.databaseUrl
      ? 'see that POSTHORN_DATABASE_URL is right and the server runs'
      : 'see the message, then ask again'
    return { checks: [folder, failed('database', (error as Error).message, mend)], managedDomain: null }
  }
  try {
    const { db, blobs } = foundation
    const signing = await checkSigning(foundation)
    const managedDomain = recordsOf(settings, await listSigningRecords(db, settings.managedDomain))
    const stored = [await checkDatabase(db, settings), await checkBlobs(blobs, db, settings)]
    const checks = [
      await noteClaim(folder, db, settings),
      ...stored,
      signing,
      await checkInboxes(db, settings),
      ...(await checkDmarcReports(foundation)),
      ...(settings.acme ? [await checkOrdered(foundation)] : []),
    ]
    return { checks, managedDomain }
  } finally {
    await foundation.close()
  }
}

/** What the service would refuse to start over; without a data folder nothing was looked at that matters. */
function refusedStart({ about, reason, mend }: StartRefused, folder: Check): Findings {
  const refusal = failed(about, reason, mend)
  return { checks: about === folder.name ? [refusal] : [folder, refusal], managedDomain: null }
}

/** Whether the keys in the database open; the first look makes one. */
async function checkSigning(foundation: Foundation): Promise<Check> {
  const name = 'signing key'
  const { managedDomain, secretKeyFile } = foundation.settings
  try {
    const keys = await loadSigningKeys(foundation, managedDomain)
    return ok(name, `${keys.map(({ selector }) => selector).join(', ')} of ${managedDomain} can be opened`)
  } catch (error) {
    // A key that does not open was sealed with another secret key; the database's own faults come the same way.
    return failed(
      name,
      (error as Error).message,
      `put back the secret key that it was sealed with (${secretKeyFile})`,
    )
  }
}

/** DNS and the way out. */
async function examineWorld(settings: Settings, managedDomain: ManagedDomain | null): Promise<Check[]> {
  const resolver = new Resolver({ servers: settings.dnsServers, timeoutMs: 2_000, tries: 2 })
  const lists = await checkBlocklists(settings, (type, name) => resolver.resolve(type, name))
  const around = [await checkWayOut(settings, resolver), ...lists]
  if (settings.isDevelopment) return [skipped('DNS', 'no records are published in development'), ...around]
  if (!managedDomain) return [skipped('DNS', 'cannot be compared without the database'), ...around]
  return [...(await checkRecords(managedDomain, resolver)), ...around]
}

const wayOutLimitMs = 3_000
const wellKnownDomain = 'gmail.com'

/** Whether mail can leave: by the smarthost, or to a well-known mail server. */
async function checkWayOut(settings: Settings, resolver: Resolver): Promise<Check> {
  const { delivery, isDevelopment, mxPort, allowPrivateNetworks } = settings
  if (delivery === 'relay') return checkRelay(settings)
  const name = 'port 25 out'
  if (delivery === 'capture') return skipped(name, 'not needed: nothing leaves this machine (capture)')
  if (isDevelopment || mxPort !== 25 || allowPrivateNetworks)
    return skipped(name, 'not tried: this is a test or a development set-up')
  const answer = await resolver.resolve('MX', wellKnownDomain)
  if (answer.status !== 'ok' || !answer.records[0]?.exchange) {
    return warning(
      name,
      `could not be tried: DNS has no mail server of ${wellKnownDomain}`,
      'see that POSTHORN_DNS is right',
    )
  }
  const mend = 'ask your network provider to open it, or set POSTHORN_DELIVERY=relay and POSTHORN_RELAY_URL'
  return checkConnection(name, { host: answer.records[0].exchange, port: 25 }, mend)
}

async function checkConnection(name: string, { host, port }: ListenAddress, mend: string): Promise<Check> {
  const reason = await tryConnecting({ host, port }, wayOutLimitMs)
  return reason === null
    ? ok(name, `${host}:${port} answers`)
    : failed(name, `${host}:${port}: ${reason}`, mend)
}

type Paint = (style: 'green' | 'yellow' | 'red' | 'dim', text: string) => string

/** Colours for a terminal that shows them; NO_COLOR is heeded. */
const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout })

const signs = {
  ok: ['green', '✓'],
  warning: ['yellow', '!'],
  failed: ['red', '✗'],
  skipped: ['dim', '-'],
} as const

const nameWidth = 16

/** `✓ database          PostgreSQL 18.4, …`, with what to do on the same line. */
export function formatCheck({ name, status, detail, mend }: Check, paint: Paint): string {
  const [style, sign] = signs[status]
  return `${paint(style, sign)} ${name.padEnd(nameWidth)}  ${detail}${mend ? `. Mend: ${mend}` : ''}`
}
