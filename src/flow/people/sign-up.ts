// Signing up: a person whose address is to be proved. What is answered, and how fast, is the same for every address.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type PersonId } from '../../base/ids.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findPersonByEmail } from '../../store/people.ts'
import { confirmPerson, putUnconfirmed } from '../../store/person-credentials.ts'
import { deleteTokens, insertToken, takeToken } from '../../store/person-tokens.ts'
import { requireName } from '../require-name.ts'
import type { Guard } from './guard.ts'
import { confirmationLetter, knownLetter } from './letters.ts'
import { networkOf } from './network.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import { hashToken, newToken } from './tokens.ts'

/** How the world reaches the pages, without a slash at the end. */
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
 * Notes the person and mails the link that confirms the address; an address that has an account is mailed that it has. Both
 * hash a password, write a token and send one mail; `tests/hostile/enumeration.ts` measures that no time tells them apart.
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
  const mayWrite = await guard.mayWrite('confirm', email)
  // Without a mail nobody could confirm it, and the password of a former mail must stay that mail's.
  if (!mayWrite) return
  const row = {
    id: newUuid<PersonId>(),
    email,
    name: requireName(name),
    passwordHash,
    createdAt: clock.now(),
  }
  const { token, isKnown } = await db.transaction((tx) => noteSignUp(tx, row))
  const letter = isKnown ? knownLetter(`${pages}/sign-in`) : confirmationLetter(`${pages}/confirm#${token}`)
  await deps.post.send(email, letter)
}

/** Security: the links of before end, for they would confirm the address under the password of this sign-up. */
async function noteSignUp(
  tx: Tx,
  row: Parameters<typeof putUnconfirmed>[1],
): Promise<{ token: string; isKnown: boolean }> {
  const id = await putUnconfirmed(tx, row)
  const known = id === null ? await findPersonByEmail(tx, row.email) : null
  const personId = id ?? known?.id ?? null
  if (personId) await deleteTokens(tx, personId, 'confirm')
  const { token, hash } = newToken()
  // What is written for somebody who is known has run out: it is there for the time that it takes.
  const expiresAt = new Date(row.createdAt.getTime() + (known ? 0 : confirmMs))
  await insertToken(tx, { hash, purpose: 'confirm', personId, createdAt: row.createdAt, expiresAt })
  return { token, isKnown: id === null }
}

/** The person behind the link, whose address is proved now; the link is used up. */
export async function confirm(
  { db, clock }: Pick<SignUpDeps, 'db' | 'clock'>,
  token: string,
): Promise<PersonId> {
  const hash = hashToken(token)
  if (!hash) throw new ServiceError('link_expired')
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const taken = await takeToken(tx, hash, 'confirm', at)
    if (!taken?.personId) throw new ServiceError('link_expired')
    await confirmPerson(tx, taken.personId, at)
    await deleteTokens(tx, taken.personId, 'confirm')
    return taken.personId
  })
}
