// Changes that people make to their own account: their name and their password.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { PersonId, SessionId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import type { Db } from '../../postgres/db.ts'
import { findPerson } from '../../store/people/people.ts'
import { lockPerson, updatePassword, updatePersonName } from '../../store/people/person-credentials.ts'
import { deleteTokens } from '../../store/people/person-tokens.ts'
import { endSessions } from '../../store/people/sessions.ts'
import { recordOwnAction } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireName } from '../require-name.ts'
import type { Guard } from './guard.ts'
import { type ChangeSite, mailChange } from './notices.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import { requireCurrent, requireRecentSignIn } from './recent-proof.ts'

type Deps = { db: Db; clock: Clock }

/** When it returns, every node knows. */
export async function renamePerson(
  { db, clock }: Deps,
  person: { id: PersonId; email: string; name: string },
  { name: givenName, ip }: { name: string; ip: string },
): Promise<void> {
  const name = requireName(givenName)
  await db.transaction(async (tx) => {
    await updatePersonName(tx, person.id, name)
    const detail = { from: person.name, to: name }
    await recordOwnAction(tx, person, ip, { action: 'person.renamed', detail, at: clock.now() })
  })
  await untilKnownEverywhere()
}

interface Changing extends ChangeSite {
  personId: PersonId
  session: { id: SessionId; createdAt: Date }
}

/**
 * Changes the password of a person who gives the current one. A person without one must have signed in within five minutes.
 * Ends all other sessions and mailed links.
 */
export async function changePassword(
  deps: Deps & { guard: Guard; passwords: Passwords; post: Post },
  { personId, session, ip, pages }: Changing,
  { current, password }: { current?: string; password: string },
): Promise<void> {
  const { db, clock, passwords } = deps
  const before = await findPerson(db, personId)
  if (!before) throw new ServiceError('session_required')
  if (before.passwordHash === null) requireRecentSignIn(clock, session.createdAt)
  else await requireCurrent(deps, { ...before, ip }, current)
  const passwordHash = await passwords.hash(networkOf(ip), password)
  await db.transaction(async (tx) => {
    const person = await lockPerson(tx, personId)
    // Replaces only the password that was compared.
    if (person?.passwordHash !== before.passwordHash) throw new ServiceError('sign_in_failed')
    const at = clock.now()
    await updatePassword(tx, personId, passwordHash)
    await deleteTokens(tx, personId, 'reset')
    await endSessions(tx, personId, session.id, at)
    await recordOwnAction(tx, before, ip, { action: 'password.changed', at })
  })
  await mailChange(deps, before.email, 'Your password at Posthorn was changed.', { ip, pages })
  await untilKnownEverywhere()
}
