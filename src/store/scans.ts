// Attachments that wait to be scanned, and what was found in them.
import type { MessageId, OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from '../postgres/db.ts'
import type { AttachmentEntry } from './messages.ts'
import { claimWork, type WorkClaim } from './work.ts'

export interface ScanJob {
  messageId: MessageId
  organizationId: OrganizationId
  direction: 'inbound' | 'outbound'
  attachments: AttachmentEntry[]
  rawId: string | null
  failures: number
  /** Whether its inbox has been deleted meanwhile. */
  isDeleted: boolean
}

export async function isScanDue(db: Queryable, at: Date): Promise<boolean> {
  const [row] = await db.query<{ isDue: boolean }>(
    'select exists (select from scan where due_at <= $1) as "isDue"',
    [at],
  )
  return row!.isDue
}

/**
 * The message that has waited longest of the organization whose turn it is; nobody else gets it until the transaction ends,
 * which may take ten minutes. Returns whose turn it was, and whether one that was there has been done meanwhile.
 */
export async function claimScan(
  tx: Tx,
  at: Date,
  whose: Pick<WorkClaim, 'behind' | 'passedOver'>,
): Promise<{ job: ScanJob | null; last: OrganizationId | null; isGone: boolean }> {
  await tx.query(`set local idle_in_transaction_session_timeout = '600s'`)
  const { claimed, last } = await claimWork(tx, 'scan', at, { limit: 1, maxBytes: 0, ...whose })
  const [job] = await tx.query<ScanJob>(
    `select m.id as "messageId", m.organization_id as "organizationId", m.direction, m.attachments, m.raw_id as "rawId",
      s.failures, b.status = 'deleted' as "isDeleted"
    from scan s join message m on m.id = s.message_id join inbox b on b.id = m.inbox_id
    where s.message_id = $1 and s.due_at <= $2`,
    [claimed[0] ?? null, at],
  )
  return { job: job ?? null, last, isGone: !job && claimed.length > 0 }
}

/** Stores what is known of a message's attachments now; false where the message is gone. */
export async function storeVerdicts(
  tx: Tx,
  messageId: MessageId,
  attachments: AttachmentEntry[],
  at: Date,
): Promise<boolean> {
  const rows = await tx.query(
    'update message set attachments = $2, updated_at = $3 where id = $1 returning id',
    [messageId, JSON.stringify(attachments), at],
  )
  return rows.length > 0
}

export async function endScan(tx: Tx, messageId: MessageId): Promise<void> {
  await tx.query('delete from scan where message_id = $1', [messageId])
}

/** Notes that a message could not be scanned whole, and when it is tried again. */
export async function postponeScan(tx: Tx, messageId: MessageId, dueAt: Date): Promise<void> {
  await tx.query('update scan set failures = failures + 1, due_at = $2 where message_id = $1', [
    messageId,
    dueAt,
  ])
}
