// The operator, who answers for the deployment: at the shell of a node or at the desk, and what the audit log says of it.
import type { OrganizationId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { insertAudit } from '../store/audit.ts'

/** Where the operator sits; null: at the shell. */
export interface Operator {
  ip: string | null
}

export const atShell: Operator = { ip: null }

export interface Deed {
  /** Null: it concerned the deployment, or an organization that goes. */
  organizationId: OrganizationId | null
  action: string
  subject: string
  detail?: Record<string, unknown>
  at: Date
}

/** Writes down what the operator does, in the transaction that does it. */
export async function noteDeed(tx: Tx, { ip }: Operator, { detail = {}, ...deed }: Deed): Promise<void> {
  await insertAudit(tx, { ...deed, detail, actor: 'operator', ip })
}
