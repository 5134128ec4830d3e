// Reads customers' domains: one, a page of them, and a domain's records as a zone fragment.
import { ServiceError } from '../../base/errors.ts'
import { writeZone } from '../../dns/domain-records.ts'
import type { Queryable } from '../../postgres/db.ts'
import { listDomainKeys } from '../../store/domains/dkim-keys.ts'
import { type DomainRow, findDomain, listDomains } from '../../store/domains/domains.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import { type DomainView, recordsOf, type ViewDeps, viewDomains, viewOneDomain } from './domain-view.ts'

type Deps = ViewDeps & { db: Queryable }

export async function readDomain(deps: Deps, caller: Caller, id: string): Promise<DomainView> {
  return await viewOneDomain(deps.db, deps, await requireDomain(deps, caller, id))
}

/** Newest first, after `beforeId`. */
export async function readDomainPage(
  deps: Deps,
  caller: Caller,
  beforeId: string | null,
  limit: number,
): Promise<DomainView[]> {
  requireWholeOrganization(caller)
  return await viewDomains(deps.db, deps, await listDomains(deps.db, caller.organizationId, beforeId, limit))
}

/** The records that the domain must publish, in a form to paste into its zone. */
export async function readZone(deps: Deps, caller: Caller, id: string): Promise<string> {
  const row = await requireDomain(deps, caller, id)
  const records = recordsOf(row, await listDomainKeys(deps.db, [row.id]), deps)
  return writeZone({ name: row.name, mailHost: deps.mailHost }, records)
}

async function requireDomain({ db }: { db: Queryable }, caller: Caller, id: string): Promise<DomainRow> {
  const row = await findDomain(db, caller.organizationId, id)
  if (!row) throw new ServiceError('not_found', 'There is no such domain.')
  requireWholeOrganization(caller)
  return row
}
