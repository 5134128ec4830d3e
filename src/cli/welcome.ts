// The end of a service's start: its warnings, the organization of development, and the banner or the ready line.
import { writeFile } from 'node:fs/promises'
import type { Listening } from '../app.ts'
import type { OrganizationId } from '../base/ids.ts'
import { findExposures } from '../config/exposure.ts'
import { formatAddress } from '../config/setting-values.ts'
import type { Role } from '../config/settings.ts'
import { createKey, unrestricted } from '../flow/accounts/key.ts'
import { createOrganization } from '../flow/accounts/organization.ts'
import { findDevelopment, linkDeveloper } from '../flow/people/sign-in-link.ts'
import type { Foundation } from '../foundation.ts'
import { listOrganizations } from '../store/accounts/organizations.ts'
import { arePagesBuilt, notBuiltWords, pagesFolder } from '../web/pages-folder.ts'
import { banner, type Development, type Pages } from './banner.ts'
import type { OutputOptions } from './context.ts'
import type { Stop } from './stop-signal.ts'

export interface ServeOptions extends OutputOptions {
  roles?: Role[]
  /** The number of the worker that this process is; set by its supervisor. */
  worker?: number
}

interface Welcoming {
  options: ServeOptions
  foundation: Foundation
  roles: readonly Role[]
  stop: Stop
}

/** Warns of exposures, and prints the banner or the ready line of a service that takes work. */
export async function welcome(
  { options, foundation, roles, stop }: Welcoming,
  listening: Listening,
): Promise<void> {
  const { settings, log } = foundation
  const asJson = options.json || settings.logFormat === 'json'
  for (const { detail, mend } of findExposures(settings)) log.warn(`${detail}; ${mend}`)
  const pages = findPages(roles)
  if (pages === 'missing') log.warn(notBuiltWords)
  const development = settings.isDevelopment ? await openDevelopment(foundation) : null
  if (stop.signal.aborted) return
  options.terminal.console.log(
    asJson ? readyLine(listening) : banner(foundation, listening, { development, pages }),
  )
}

function findPages(roles: readonly Role[]): Pages {
  if (!roles.includes('dashboard')) return 'elsewhere'
  return arePagesBuilt(pagesFolder) ? 'built' : 'missing'
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

function readyLine({ http, https, operator, smtp, submission, submissions }: Listening): string {
  return JSON.stringify({
    event: 'ready',
    http: http && `http://${formatAddress(http)}`,
    ...(https && { https: `https://${formatAddress(https)}` }),
    operator: `http://${formatAddress(operator)}`,
    smtp: smtp && formatAddress(smtp),
    ...(submission && { submission: formatAddress(submission) }),
    ...(submissions && { submissions: formatAddress(submissions) }),
  })
}
