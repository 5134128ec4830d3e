// Proof that a session is in its owner's hands: a sign-in within minutes, or the password.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { PersonId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import type { Db } from '../../postgres/db.ts'
import { findPerson } from '../../store/people/people.ts'
import type { Guard } from './guard.ts'
import type { Passwords } from './passwords.ts'

const recentMs = 5 * 60_000

/**
 * Throws `sign_in_failed` if the session is older than five minutes and the password is not given. Security: the thief of a
 * session must not add their own way to sign in, which would outlast the session.
 */
export async function requireRecentProof(
  deps: { db: Db; clock: Clock; guard: Guard; passwords: Passwords },
  { personId, signedInAt, ip }: { personId: PersonId; signedInAt: Date; ip: string },
  password: string | undefined,
): Promise<void> {
  if (isRecent(deps.clock, signedInAt)) return
  const person = await findPerson(deps.db, personId)
  if (password === undefined || !person?.passwordHash) throw signedInLongAgo()
  await requireCurrent(deps, { ...person, ip }, password)
}

/** Throws `sign_in_failed` if the session is older than five minutes. */
export function requireRecentSignIn(clock: Clock, signedInAt: Date): void {
  if (!isRecent(clock, signedInAt)) throw signedInLongAgo()
}

function signedInLongAgo(): ServiceError {
  return new ServiceError(
    'sign_in_failed',
    'You signed in more than five minutes ago. Enter your password, or sign in again.',
  )
}

function isRecent(clock: Clock, signedInAt: Date): boolean {
  return clock.nowMs() - signedInAt.getTime() < recentMs
}

/** Throws `sign_in_failed` for a wrong password. Security: the thief of a session must not try passwords through it. */
export async function requireCurrent(
  { guard, passwords }: { guard: Guard; passwords: Passwords },
  { email, passwordHash, ip }: { email: string; passwordHash: string | null; ip: string },
  current: string | undefined,
): Promise<void> {
  const wrong = 'The current password is not right.'
  if (current === undefined) throw new ServiceError('sign_in_failed', wrong)
  await guard.admit(email, ip)
  if (!(await passwords.isRight(networkOf(ip), current, passwordHash)))
    throw new ServiceError('sign_in_failed', wrong)
  await guard.passed(email, ip)
}
