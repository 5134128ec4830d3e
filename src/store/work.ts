// What jobs do, claimed by advisory locks, of organizations in turn.
import type { OrganizationId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'

export interface WorkClaim {
  limit: number
  maxBytes: number
  /** What has failed more often is left to others. */
  maxFailures?: number | undefined
  /** The organization that had the last turn. */
  behind?: OrganizationId | null
  /** Organizations that have no turn. */
  passedOver?: readonly OrganizationId[]
  /** The one organization whose work is wanted. */
  only?: OrganizationId | undefined
}

export interface ClaimedWork {
  /** They may have been done between the look and the lock: who asked reads the rows again. */
  claimed: string[]
  /** Who had the last turn. */
  last: OrganizationId | null
  /** Whether there is more to be had at once. */
  isMore: boolean
}

/**
 * Claims up to `limit` due rows, and no more than weigh `maxBytes` together unless it is a single one, of organizations in
 * turn; one that failed before is claimed alone. The claim writes nothing and falls with the transaction.
 */
export async function claimWork(
  tx: Tx,
  kind: 'mail' | 'report' | 'scan',
  at: Date,
  { limit, maxBytes, maxFailures, behind, passedOver = [], only }: WorkClaim,
): Promise<ClaimedWork> {
  const [claim] = await tx.query<ClaimedWork>(
    'select claimed, last, is_more as "isMore" from claim_work($1, $2, $3, $4, $5, $6, $7, $8)',
    [kind, at, limit, maxBytes, maxFailures ?? null, behind ?? null, passedOver, only ?? null],
  )
  return claim!
}

/** Lets the transaction that holds the claims stay idle for as long as reading the mails may take at worst. */
export async function keepClaims(tx: Tx): Promise<void> {
  await tx.query(`set local idle_in_transaction_session_timeout = '300s'`)
}
