// Suppressions by hand: a customer adds or removes an address.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { parseEmail, sameAddressKey } from '../../mail/address.ts'
import type { Db } from '../../postgres/db.ts'
import {
  deleteSuppression,
  findSuppression,
  insertSuppression,
  type SuppressionReason,
  type SuppressionRow,
} from '../../store/sending/suppressions.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'

type Deps = { db: Db; clock: Clock }

/** An address that a customer suppresses. `createdAt` counts as now if it is null or not in the past. */
interface Given {
  email: string
  reason: SuppressionReason
  note: string | null
  createdAt: Date | null
}

/** Adds the address as `manual`. Returns the existing row if it is already suppressed. */
export async function addSuppression(deps: Deps, caller: Caller, email: string): Promise<SuppressionRow> {
  return await importSuppression(deps, caller, { email, reason: 'manual', note: null, createdAt: null })
}

/** Adds the address with a reason, note and time from another service. Returns the existing row if there is one. */
export async function importSuppression(
  { db, clock }: Deps,
  caller: Caller,
  { email, reason, note, createdAt }: Given,
): Promise<SuppressionRow> {
  requireWholeOrganization(caller)
  const { organizationId } = caller
  const addressKey = sameAddressKey(email)
  const written = parseEmail(email)?.email ?? email
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const since = createdAt && createdAt.getTime() > 0 && createdAt < at ? createdAt : null
    const added = { organizationId, addressKey, email: written, reason, note, since }
    const inserted = await insertSuppression(tx, added, at)
    if (inserted)
      await recordAction(tx, organizationId, actorOf(caller), {
        action: 'suppression.added',
        subject: email,
        detail: { reason },
        at,
      })
    const row = inserted ?? (await findSuppression(tx, organizationId, addressKey))
    // The row existed at the insert and was removed before the search.
    if (!row) throw new ServiceError('unavailable')
    return row
  })
}

/** Removes the suppression, so that the organization may write to the address again. */
export async function removeSuppression({ db, clock }: Deps, caller: Caller, email: string): Promise<void> {
  const key = sameAddressKey(email)
  await db.transaction(async (tx) => {
    if (!(await deleteSuppression(tx, caller.organizationId, key)))
      throw new ServiceError('not_found', 'The address is not suppressed.')
    // Order of checks: the resource, then the key's restrictions.
    requireWholeOrganization(caller)
    const entry = { action: 'suppression.removed', subject: email, at: clock.now() } as const
    await recordAction(tx, caller.organizationId, actorOf(caller), entry)
  })
}
