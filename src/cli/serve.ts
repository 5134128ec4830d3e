// `posthorn serve` and `posthorn migrate`.

import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { App, Listening } from '../app.ts'
import type { OrganizationId } from '../base/ids.ts'
import { createLog, type Log } from '../base/log.ts'
import { findExposures } from '../config/exposure.ts'
import { formatAddress } from '../config/setting-values.ts'
import { roles as allRoles, parseRoles, type Role } from '../config/settings.ts'
import { createKey, unrestricted } from '../flow/accounts/key.ts'
import { createOrganization } from '../flow/accounts/organization.ts'
import { findDevelopment, linkDeveloper } from '../flow/people/sign-in-link.ts'
import { type Foundation, openFoundation } from '../foundation.ts'
import { listOrganizations } from '../store/accounts/organizations.ts'
import { arePagesBuilt, notBuiltWords, pagesFolder } from '../web/pages-folder.ts'
import { banner, type Development, type Pages } from './banner.ts'
import { loadSettings, type OutputOptions, print, remark } from './context.ts'
import { onStopSignal } from './stop-signal.ts'

interface ServeOptions extends OutputOptions {
  roles?: Role[]
}

/** The share of the 30 s for a stop after the drain delay. It ends even a stop that hangs. */
const hardStopMs = 28_000

export function addServeCommands(program: Command): void {
  program
    .command('serve', { isDefault: false })
    .description('run the service until it receives SIGINT or SIGTERM')
    .addOption(
      new Option('--roles <a,b>', 'run only these roles').choices(allRoles).argParser<Role[]>(requireRoles),
    )
    .option('--json', 'print one JSON line when ready, and nothing else')
    .action(serve)
  program
    .command('migrate')
    .description('update the database schema, as serve does at its start')
    .option('--json', 'print JSON')
    .action(migrateOnly)
}

async function serve(options: ServeOptions): Promise<void> {
  const settings = loadSettings(options)
  const asJson = options.json || settings.logFormat === 'json'
  const log = createLog(settings.logLevel, settings.logFormat)
  // Before the embedded PostgreSQL starts: from then on, a signal that killed this process would leave it running.
  const stop = listenForStop(log, settings.drainDelayMs + hardStopMs)
  const foundation = await openFoundation(settings, log, (line) => remark(options, line))
  if (stop.aborted) return await foundation.close()
  const roles = options.roles ?? settings.roles
  let app: App
  try {
    // Other commands start three times as fast without it.
    const { startApp } = await import('../app.ts')
    app = await startApp(foundation, roles)
  } catch (error) {
    await foundation.close()
    throw error
  }
  for (const { detail, mend } of findExposures(settings)) log.warn(`${detail}; ${mend}`)
  const pages = findPages(roles)
  if (pages === 'missing') log.warn(notBuiltWords)
  const development = settings.isDevelopment ? await openDevelopment(foundation) : null
  if (!stop.aborted) {
    options.terminal.console.log(
      asJson ? readyLine(app.listening) : banner(foundation, app.listening, { development, pages }),
    )
    flushCompileCache() // now, because a killed service never gets to it at its end
    await once(stop, 'abort')
  }
  await app.stop()
  await foundation.close()
  process.exit(0)
}

function findPages(roles: readonly Role[]): Pages {
  if (!roles.includes('dashboard')) return 'elsewhere'
  return arePagesBuilt(pagesFolder) ? 'built' : 'missing'
}

async function migrateOnly(options: OutputOptions): Promise<void> {
  const settings = loadSettings(options)
  const log = createLog('warn', settings.logFormat, options.terminal.stderr)
  const foundation = await openFoundation(settings, log, (line) => remark(options, line))
  const rows = await foundation.db.query<{ name: string }>(
    'select name from schema_migration order by version',
  )
  await foundation.close()
  print(
    options,
    { migrations: rows.map(({ name }) => name) },
    `The schema is up to date (${rows.at(-1)?.name}).`,
  )
}

/** People who try things out open more inboxes than a new customer. */
const developmentInboxes = 1_000

/** In development, the first start makes an organization and a key with all scopes. Both persist. */
export async function openDevelopment(foundation: Foundation): Promise<Development> {
  const organizations = await listOrganizations(foundation.db)
  const made = organizations.length === 0 ? await makeDevelopment(foundation) : null
  const own = made?.organizationId ?? (await findDevelopment(foundation))
  const signInToken = own ? await linkDeveloper(foundation, own) : null
  return { secret: made?.secret ?? null, signInToken }
}

async function makeDevelopment(
  foundation: Foundation,
): Promise<{ organizationId: OrganizationId; secret: string }> {
  const { defaultLimits, dataDir } = foundation.settings
  const managedStarter = Math.max(defaultLimits.managedStarter, developmentInboxes)
  const limits = { ...defaultLimits, managedStarter }
  const organization = await createOrganization(foundation, {
    name: 'Development',
    status: 'active',
    limits,
  })
  const { secret } = await createKey(foundation, {
    ...unrestricted,
    organizationId: organization.id,
    name: 'development',
  })
  await writeFile(`${dataDir}/development-key`, `${secret}\n`, { mode: 0o600 })
  return { organizationId: organization.id, secret }
}

function readyLine({ http, https, operator, smtp }: Listening): string {
  return JSON.stringify({
    event: 'ready',
    http: http && `http://${formatAddress(http)}`,
    ...(https && { https: `https://${formatAddress(https)}` }),
    operator: `http://${formatAddress(operator)}`,
    smtp: smtp && formatAddress(smtp),
  })
}

/**
 * Aborted by the first signal: the service drains, or a start under way ends at its next step. A second signal, or a stop
 * longer than `limitMs`, ends the process at once.
 */
function listenForStop(log: Log, limitMs: number): AbortSignal {
  const stop = new AbortController()
  onStopSignal((signal) => {
    log.info({ signal }, 'stopping: no new work is accepted, work in progress finishes')
    setTimeout(() => process.exit(1), limitMs).unref()
    stop.abort()
  })
  return stop.signal
}

function requireRoles(text: string): Role[] {
  const roles = parseRoles(text)
  if (!roles) throw new InvalidArgumentError(`Roles are ${allRoles.join(', ')}.`)
  return roles
}
