// A customer's domain as shown in answers and events: its states, its capabilities and the records to publish.
import type { DomainId } from '../../base/ids.ts'
import { type DomainRecord, listDomainRecords, questionOf } from '../../dns/domain-records.ts'
import type { MtaStsMode } from '../../dns/mta-sts.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type DomainKeyRow, listDomainKeys } from '../../store/domains/dkim-keys.ts'
import type { DomainRow, DomainState, Observation, Standing } from '../../store/domains/domains.ts'

export interface RecordView extends DomainRecord {
  status: 'pending' | Observation['status']
  observed: string[]
  checkedAt: string | null
}

export interface CapabilityView {
  status: DomainState
  reasons: string[]
  checkedAt: string | null
}

export interface DomainView {
  id: DomainId
  domain: string
  status: DomainState
  records: RecordView[]
  capabilities: { outbound: CapabilityView; inbound: CapabilityView }
  createdAt: string
  updatedAt: string
  verifiedAt: string | null
}

export interface ViewDeps {
  /** The host that takes the mail of customers' domains. */
  mailHost: string
  /** The current mode of their MTA-STS policies. */
  mtaStsMode(): MtaStsMode
}

/** The domains with their keys' records. */
export async function viewDomains(db: Queryable, deps: ViewDeps, rows: DomainRow[]): Promise<DomainView[]> {
  const keys = await listDomainKeys(
    db,
    rows.map(({ id }) => id),
  )
  const byDomain = Map.groupBy(keys, ({ domainId }) => domainId)
  return rows.map((row) => viewDomain(row, recordsOf(row, byDomain.get(row.id) ?? [], deps)))
}

export async function viewOneDomain(db: Queryable, deps: ViewDeps, row: DomainRow): Promise<DomainView> {
  const [view] = await viewDomains(db, deps, [row])
  return view!
}

/** The records that the domain must publish. */
export function recordsOf(
  { name, challenge }: Pick<DomainRow, 'name' | 'challenge'>,
  keys: DomainKeyRow[],
  { mailHost, mtaStsMode }: ViewDeps,
): DomainRecord[] {
  return listDomainRecords({ name, challenge, keys, mailHost, mtaStsMode: mtaStsMode() })
}

function viewDomain(row: DomainRow, records: DomainRecord[]): DomainView {
  const { id, name, status, outbound, inbound, standing } = row
  return {
    id,
    domain: name,
    status,
    records: records.map((record) => viewRecord(record, row.observations[questionOf(record)])),
    capabilities: {
      outbound: viewCapability(outbound, standing.outbound),
      inbound: viewCapability(inbound, standing.inbound),
    },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    verifiedAt: row.verifiedAt?.toISOString() ?? null,
  }
}

/** A record that the last check did not cover, such as that of a new key, is pending. */
function viewRecord(record: DomainRecord, observation: Observation | undefined): RecordView {
  return { ...record, ...(observation ?? { status: 'pending' as const, observed: [], checkedAt: null }) }
}

function viewCapability(status: DomainState, { reasons, checkedAt }: Standing): CapabilityView {
  return { status, reasons, checkedAt }
}
