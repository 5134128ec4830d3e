// Attachments that wait to be scanned, and what was found in them.
import type { MessageId, OrganizationId } from '../base/ids.ts'
import type { Queryable, Tx } from './db.ts'
import type { AttachmentEntry } from './messages.ts'

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

/** The message that has waited longest; nobody else gets it until the transaction ends, which may take ten minutes. */
export async function claimScan(tx: Tx, at: Date): Promise<ScanJob | null> {
  await tx.query(`set local idle_in_transaction_session_timeout = '600s'`)
  const [job] = await tx.query<ScanJob>(
    `select m.id as "messageId", m.organization_id as "organizationId", m.direction, m.attachments, m.raw_id as "rawId",
      s.failures, b.status = 'deleted' as "isDeleted"
    from claim_scan($1) as claimed(id) join scan s on s.message_id = claimed.id join message m on m.id = claimed.id
      join inbox b on b.id = m.inbox_id`,
    [at],
  )
  return job ?? null
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
