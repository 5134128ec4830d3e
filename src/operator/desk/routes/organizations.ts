// Organizations at the desk: list them, and show one completely.
import { ServiceError } from '../../../base/errors.ts'
import { pageOf } from '../../../base/page-of.ts'
import { defaultLimits } from '../../../flow/accounts/organization.ts'
import { readMetrics } from '../../../flow/metrics/read-metrics.ts'
import { ownOrganizationId } from '../../../flow/own-organization.ts'
import { listKeys } from '../../../store/accounts/keys.ts'
import {
  countByStatus,
  countWaiting,
  listMemberOverviews,
  listOverviews,
  readHoldingsUse,
} from '../../../store/accounts/organization-overviews.ts'
import { findOrganization, type Limits, type OrganizationRow } from '../../../store/accounts/organizations.ts'
import { listDomains } from '../../../store/domains/domains.ts'
import { readUsage } from '../../../store/events/metrics.ts'
import type { Desk, DeskDeps } from '../deps.ts'
import {
  Organization,
  OrganizationCounts,
  OrganizationList,
  OrganizationParams,
  OrganizationQuery,
} from '../schemas/organization.ts'

const pageLength = 50
/** More domains than any organization has, unless its limit was raised. */
const maxDomains = 200

export function organizationRoutes(desk: Desk, deps: DeskDeps): void {
  addCounts(desk, deps)
  addList(desk, deps)
  addShow(desk, deps)
}

function addCounts(desk: Desk, { db }: DeskDeps): void {
  desk.get(
    '/desk/v1/organizations/counts',
    { schema: { response: { 200: OrganizationCounts } } },
    async () => ({
      counts: await countByStatus(db),
    }),
  )
}

function addList(desk: Desk, { db, clock }: DeskDeps): void {
  desk.get(
    '/desk/v1/organizations',
    { schema: { querystring: OrganizationQuery, response: { 200: OrganizationList } } },
    async ({ query: { search, status, cursor } }) => {
      const filter = { search: search?.trim() || null, status: status ?? null, at: clock.now() }
      const rows = await listOverviews(db, filter, cursor ?? null, pageLength + 1)
      const { page, nextCursor } = pageOf(rows, pageLength)
      return { organizations: page, counts: await countByStatus(db), nextCursor }
    },
  )
}

function addShow(desk: Desk, deps: DeskDeps): void {
  desk.get(
    '/desk/v1/organizations/:organizationId',
    { schema: { params: OrganizationParams, response: { 200: Organization } } },
    async ({ params: { organizationId } }) => {
      const row = await findOrganization(deps.db, organizationId)
      if (!row) throw new ServiceError('not_found', 'There is no such organization.')
      return await present(deps, row)
    },
  )
}

async function present(deps: DeskDeps, row: OrganizationRow): Promise<Organization> {
  const { db } = deps
  const [metrics, limits, members, domains, keys, waiting] = await Promise.all([
    readMetrics(deps, row.id, 24),
    presentLimits(deps, row),
    listMemberOverviews(db, row.id),
    listDomains(db, row.id, null, maxDomains),
    listKeys(db, row.id),
    countWaiting(db, row.id),
  ])
  return {
    ...row,
    limits,
    waiting,
    members,
    domains,
    keys,
    isOwn: row.id === ownOrganizationId,
    lastDay: { ...metrics.totals, rates: metrics.rates },
  }
}

/** Returns the limits in their usual order, each with its current use. */
async function presentLimits(
  { db, clock }: DeskDeps,
  { id, limits, managedUsed }: OrganizationRow,
): Promise<Organization['limits']> {
  const at = clock.now()
  const used: Record<string, number> = {
    ...(await readUsage(db, id, at)),
    ...(await readHoldingsUse(db, id, at)),
    managedStarter: managedUsed,
  }
  const names = Object.keys(defaultLimits) as (keyof Limits)[]
  return names.map((name) => ({ name, value: limits[name], used: used[name] ?? null }))
}
