// The audit log: who did what, when and from where.
import { newUuid, type OrganizationId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'

export interface AuditEntry {
  /** Null: it concerned the deployment. */
  organizationId: OrganizationId | null
  /** A person's address, `operator`, or a key's name. */
  actor: string
  /** What was done, as `organization.approved`. */
  action: string
  /** What it was done to. */
  subject: string
  detail: Record<string, unknown>
  ip: string | null
  at: Date
}

export async function insertAudit(tx: Tx, entry: AuditEntry): Promise<void> {
  await tx.query(
    `insert into audit_entry (id, organization_id, actor, action, subject, detail, ip, at)
    values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[newUuid(), entry.organizationId, entry.actor, entry.action, entry.subject],
      ...[JSON.stringify(entry.detail), entry.ip, entry.at],
    ],
  )
}
