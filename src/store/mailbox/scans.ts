// Attachments that wait for a scan, and the verdicts on them.
import type { MessageId, OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx, Writer } from '../../postgres/db.ts'
import { type Claim, isOfClaim } from '../work.ts'
import type { AttachmentEntry } from './messages.ts'

export interface ScanJob {
  messageId: MessageId
  organizationId: OrganizationId
  /** Whether the raw row has only the attachments, one after the other. Otherwise each has its span. */
  isComposed: boolean
  attachments: AttachmentEntry[]
  rawId: string | null
  failures: number
  /** Whether its inbox was deleted meanwhile. */
  isDeleted: boolean
}

/** Returns the message to scan; null if it is gone. */
export async function findScan(db: Queryable, messageId: string): Promise<ScanJob | null> {
  const [job] = await db.query<ScanJob>(
    `select m.id as "messageId", m.organization_id as "organizationId", m.direction = 'outbound' and not m.raw_whole as "isComposed", m.attachments, m.raw_id as "rawId",
      s.failures, b.status = 'deleted' as "isDeleted"
    from scan s join message m on m.id = s.message_id join inbox b on b.id = m.inbox_id where s.message_id = $1`,
    [messageId],
  )
  return job ?? null
}

/** Stores the current scan states of a message's attachments; returns false if the message is gone. */
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

/** Deletes the finished rows of this claim; returns the messages that the claim still held. */
export async function endScans(
  db: Writer,
  { owner, until }: Claim,
  ids: readonly string[],
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `delete from scan where message_id = any($1) and ${isOfClaim('$2', '$3')} returning message_id as id`,
    [ids, owner, until],
  )
  return rows.map(({ id }) => id)
}

/** Returns the attachments' scan states in the form that `findScanStates` returns. */
export function scanStatesOf(attachments: readonly AttachmentEntry[]): string {
  return attachments.map(({ scanState }) => scanState).join(' ')
}

/** Returns the scan states of each message's attachments, in their order. Skips deleted messages. */
export async function findScanStates(db: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ id: string; states: string }>(
    `select m.id, array_to_string(array(select a->>'scanState' from jsonb_array_elements(m.attachments) with ordinality x(a, n)
      order by n), ' ') as states from message m where m.id = any($1)`,
    [ids],
  )
  return new Map(rows.map(({ id, states }) => [id, states]))
}
