// Whether the caller may still make or change something, checked in the transaction of the change.
import { ServiceError } from '../base/errors.ts'
import type { KeyId, PersonId, SessionId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { mayStillChange } from '../store/accounts/keys.ts'
import { holdPerson } from '../store/people/person-credentials.ts'
import { isLive } from '../store/people/sessions.ts'

/** The calling key, its session, and the person who makes the change. */
export interface Maker {
  keyId: KeyId
  sessionId: SessionId | undefined
  personId: PersonId | null
}

/**
 * Refuses a revoked key, a removed member, a member who became a viewer, and an ended session. Security: sessions and keys
 * are cached for a second, in which a removed member could make a key that outlives them. A caller that makes something
 * holds the organization's lock, as a removal does.
 */
export async function requireStillChanging(tx: Tx, { keyId, sessionId, personId }: Maker): Promise<void> {
  if (personId) await holdPerson(tx, personId)
  if (sessionId) await requireLiveSession(tx, sessionId)
  if (!(await mayStillChange(tx, keyId)))
    throw new ServiceError('insufficient_scope', 'Your key was revoked or your role was removed.')
}

/**
 * Refuses an ended session. Security: otherwise a thief could add a way to sign in, or point a webhook at themselves, within
 * the second after a password reset. The caller holds the person's lock, so a reset has either ended the session or sees the
 * addition.
 */
export async function requireLiveSession(tx: Tx, sessionId: SessionId): Promise<void> {
  if (!(await isLive(tx, sessionId))) throw new ServiceError('session_required')
}
