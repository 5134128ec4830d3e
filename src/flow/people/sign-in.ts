// Signing in by password: one refusal for every cause, after the same time, and fewer and fewer tries.
import { ServiceError } from '../../base/errors.ts'
import type { PersonId } from '../../base/ids.ts'
import { sameAddressKey } from '../../mail/address.ts'
import { findPersonByEmail } from '../../store/people.ts'
import { networkOf } from './network.ts'
import { confirmAgain, type PageAddress, type SignUpDeps } from './sign-up.ts'

/**
 * The person whose address and password these are. Who has not confirmed the address is refused like anyone, and mailed the
 * link again: that shows only to somebody who knows the password.
 */
export async function signInByPassword(
  deps: SignUpDeps,
  { email: given, password }: { email: string; password: string },
  { ip, pages }: { ip: string; pages: PageAddress },
): Promise<PersonId> {
  const { db, guard, passwords } = deps
  const email = sameAddressKey(given)
  await guard.admit(email, ip)
  const person = await findPersonByEmail(db, email)
  const isRight = await passwords.isRight(networkOf(ip), password, person?.passwordHash ?? null)
  if (!person || !isRight) throw new ServiceError('sign_in_failed')
  if (!person.confirmedAt) {
    await confirmAgain(deps, person, pages)
    throw new ServiceError('sign_in_failed')
  }
  await guard.passed(email, ip)
  return person.id
}
