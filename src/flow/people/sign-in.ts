// Sign-in by password: one refusal for every cause, after the same time, with ever fewer attempts.
import { ServiceError } from '../../base/errors.ts'
import type { PersonId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import { sameAddressKey } from '../../mail/address.ts'
import { findPersonByEmail } from '../../store/people/people.ts'
import type { SignUpDeps } from './sign-up.ts'

/**
 * The person with this address and password. Security: an unconfirmed address is refused like any other cause. Otherwise a
 * stranger who has just signed up with the address would learn that it had no account.
 */
export async function signInByPassword(
  { db, guard, passwords }: Pick<SignUpDeps, 'db' | 'guard' | 'passwords'>,
  { email: given, password }: { email: string; password: string },
  ip: string,
): Promise<PersonId> {
  const email = sameAddressKey(given)
  await guard.admit(email, ip)
  const person = await findPersonByEmail(db, email)
  const isRight = await passwords.isRight(networkOf(ip), password, person?.passwordHash ?? null)
  if (!person?.confirmedAt || !isRight) throw new ServiceError('sign_in_failed')
  await guard.passed(email, ip)
  return person.id
}
