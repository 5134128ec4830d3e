// Sign-up of a person, whose address must then be proved. Answer and duration are the same for every address.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type PersonId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findPersonByEmail } from '../../store/people/people.ts'
import {
  confirmPerson,
  lockPerson,
  putUnconfirmed,
  updatePassword,
  updatePersonName,
} from '../../store/people/person-credentials.ts'
import {
  deleteTokens,
  findToken,
  insertToken,
  type SignUp,
  takeToken,
} from '../../store/people/person-tokens.ts'
import { requireName } from '../require-name.ts'
import type { Guard } from './guard.ts'
import { confirmationLetter, knownLetter } from './letters.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import { hashToken, newToken } from './tokens.ts'

/** The public base address of the pages, without a slash at the end. */
export type PageAddress = string

export interface SignUpDeps {
  db: Db
  clock: Clock
  guard: Guard
  passwords: Passwords
  post: Post
}

const confirmMs = 24 * 3_600_000

/**
 * Stores the person and mails a confirmation link. An address that has an account gets a mail that says so. Both cases hash
 * a password, write a token and send one mail. `tests/hostile/enumeration.ts` measures that their times do not differ.
 */
export async function signUp(
  deps: SignUpDeps,
  { email: given, password, name }: { email: string; password: string; name: string },
  { ip, pages }: { ip: string; pages: PageAddress },
): Promise<void> {
  const { db, clock, guard, passwords } = deps
  const email = sameAddressKey(given)
  await guard.admitVisitor(ip)
  const passwordHash = await passwords.hash(networkOf(ip), password)
  const createdAt = clock.now()
  const signUp = { name: requireName(name), passwordHash }
  // Security: this also limits pending sign-ups for one address, to about 30 within the 24 hours that links are valid.
  if (!(await guard.mayWrite('confirm', email))) return
  const { token, isKnown } = await db.transaction((tx) => noteSignUp(tx, { email, signUp, createdAt }))
  const letter = isKnown
    ? knownLetter(`${pages}/sign-in`)
    : confirmationLetter(`${pages}/confirm#${token}`, createdAt)
  await deps.post.send(email, letter)
}

/** Security: each link keeps the password of its own sign-up, so that no click confirms a stranger's password. */
async function noteSignUp(
  tx: Tx,
  { email, signUp, createdAt }: { email: string; signUp: SignUp; createdAt: Date },
): Promise<{ token: string; isKnown: boolean }> {
  const id = await putUnconfirmed(tx, { id: newUuid<PersonId>(), email, name: signUp.name, createdAt })
  const known = id === null ? await findPersonByEmail(tx, email) : null
  const personId = id ?? known?.id ?? null
  const { token, hash } = newToken()
  // The token for a known person has expired already. It is written so that both cases take the same time.
  const expiresAt = new Date(createdAt.getTime() + (known ? 0 : confirmMs))
  await insertToken(tx, { hash, purpose: 'confirm', personId, signUp, createdAt, expiresAt })
  return { token, isKnown: id === null }
}

/** Proves the address and applies the name and password of the link's sign-up. All links of the person end. */
export async function confirm(
  { db, clock }: Pick<SignUpDeps, 'db' | 'clock'>,
  token: string,
): Promise<PersonId> {
  const hash = hashToken(token)
  if (!hash) throw new ServiceError('link_expired')
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const found = await findToken(tx, hash, 'confirm', at)
    // Locks the person first. Otherwise two links of one person that are opened at once could wait for each other.
    const person = found?.personId ? await lockPerson(tx, found.personId) : null
    const taken = person && (await takeToken(tx, hash, 'confirm', at))
    // Security: a link never replaces a proved password.
    if (!person || !taken?.signUp || person.confirmedAt) throw new ServiceError('link_expired')
    await updatePassword(tx, person.id, taken.signUp.passwordHash)
    await updatePersonName(tx, person.id, taken.signUp.name)
    await confirmPerson(tx, person.id, at)
    await deleteTokens(tx, person.id, 'confirm')
    return person.id
  })
}
