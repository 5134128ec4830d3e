// Whether the caller may still make or change something, asked in the transaction that does it.
import { ServiceError } from '../base/errors.ts'
import type { KeyId, PersonId, SessionId } from '../base/ids.ts'
import type { Tx } from '../postgres/db.ts'
import { mayStillChange } from '../store/accounts/keys.ts'
import { holdPerson } from '../store/people/person-credentials.ts'
import { isLive } from '../store/people/sessions.ts'

/** The key that asks, the session that it stands for, and the person who is the maker of what is made. */
export interface Maker {
  keyId: KeyId
  sessionId: SessionId | undefined
  personId: PersonId | null
}

/**
 * Refuses a key that was revoked, a member who was removed or made a viewer, and a session that has ended. Security: sessions
 * and keys are known for a second, in which a removed member could make a key that outlives them. Who makes something holds the
 * organization's lock, as a removal does.
 */
export async function requireStillChanging(tx: Tx, { keyId, sessionId, personId }: Maker): Promise<void> {
  if (personId) await holdPerson(tx, personId)
  if (sessionId) await requireLiveSession(tx, sessionId)
  if (!(await mayStillChange(tx, keyId)))
    throw new ServiceError('insufficient_scope', 'Your key was revoked, or your role has ended.')
}

/**
 * Refuses a session that has ended. Security: whoever stole it could otherwise add a way in, or point a webhook at themselves,
 * within the second after a reset of the password. The caller holds the person, so that a reset has ended the session or sees
 * what is added.
 */
export async function requireLiveSession(tx: Tx, sessionId: SessionId): Promise<void> {
  if (!(await isLive(tx, sessionId))) throw new ServiceError('session_required')
}
