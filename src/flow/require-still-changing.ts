// Whether who asks may still make something, once the organization is locked.
import { ServiceError } from '../base/errors.ts'
import type { KeyId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { mayStillChange } from '../store/keys.ts'

/**
 * Refuses a key that was revoked, and a member who was removed or made a viewer. Security: sessions and keys are known for a
 * second, in which a removed member could make a key that outlives them. The caller holds the organization's lock.
 */
export async function requireStillChanging(tx: Tx, keyId: KeyId): Promise<void> {
  if (!(await mayStillChange(tx, keyId)))
    throw new ServiceError('insufficient_scope', 'Your key was revoked, or your role has ended.')
}
