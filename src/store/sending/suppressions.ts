// Addresses to which an organization no longer writes.
import { newUuid, newUuidAt, type OrganizationId, type SubmissionId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import { newestFirst } from '../rows.ts'
import type { DeliveryKey } from './deliveries.ts'

export type SuppressionReason = 'manual' | 'hard_bounce' | 'complaint' | 'unsubscribe'

export interface SuppressionRow {
  id: string
  organizationId: OrganizationId
  email: string
  reason: SuppressionReason
  submissionId: SubmissionId | null
  /** Text from the service from which the suppression was imported, one line of up to 200 characters. */
  note: string | null
  createdAt: Date
}

const columns = `id, organization_id as "organizationId", email, reason,
  submission_id as "submissionId", note, created_at as "createdAt"`

/** Adds a suppression and announces it. Returns null if the address is already suppressed; its row then stays as it is. */
export async function insertSuppression(
  tx: Tx,
  suppression: {
    organizationId: OrganizationId
    addressKey: string
    email: string
    reason: SuppressionReason
    note: string | null
    /** When the address was suppressed, if that was before `at`. The list is ordered by it. */
    since: Date | null
  },
  at: Date,
): Promise<SuppressionRow | null> {
  const { organizationId: org, addressKey: key, email, reason, note, since } = suppression
  const id = since ? newUuidAt(since.getTime()) : newUuid()
  const added = [{ id, org, key, email, reason, note, since }]
  const [row] = await tx.query<SuppressionRow>(`select ${columns} from add_suppressions($1, $2)`, [
    JSON.stringify(added),
    at,
  ])
  return row ?? null
}

export async function findSuppression(
  db: Queryable,
  organizationId: OrganizationId,
  addressKey: string,
): Promise<SuppressionRow | null> {
  const [row] = await db.query<SuppressionRow>(
    `select ${columns} from suppression where organization_id = $1 and address_key = $2`,
    [organizationId, addressKey],
  )
  return row ?? null
}

/** Deletes a suppression; returns whether there was one. */
export async function deleteSuppression(
  tx: Tx,
  organizationId: OrganizationId,
  addressKey: string,
): Promise<boolean> {
  const gone = await tx.query(
    'delete from suppression where organization_id = $1 and address_key = $2 returning id',
    [organizationId, addressKey],
  )
  return gone.length > 0
}

/** The organization's suppressions, newest first, after `beforeId`. */
export const listSuppressions = newestFirst<SuppressionRow>(columns, 'suppression where organization_id = $1')

/** Suppresses recipients of submissions, each in its own organization, and announces it; returns how many are new. */
export async function suppressRecipients(
  tx: Tx,
  recipients: (DeliveryKey & { reason: SuppressionReason })[],
  at: Date,
): Promise<number> {
  if (recipients.length === 0) return 0
  const facts = recipients.map(({ submissionId, position, reason }) => ({
    id: newUuid(),
    submission: submissionId,
    position,
    reason,
  }))
  const [row] = await tx.query<{ count: number }>('select suppress_addresses($1, $2) as count', [
    JSON.stringify(facts),
    at,
  ])
  return row!.count
}
