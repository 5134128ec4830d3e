// A new password for who has lost theirs: a link by mail, whose use ends every session there was.
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { ServiceError } from '../../base/errors.ts'
import type { PersonId } from '../../base/ids.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import {
  type AddedWay,
  findAddedWays,
  lockPerson,
  proveAgain,
  removeAddedWays,
  updatePassword,
} from '../../store/person-credentials.ts'
import { deleteTokens, findToken, insertToken, takeToken } from '../../store/person-tokens.ts'
import { endSessions } from '../../store/sessions.ts'
import { recordOwnDeed } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import type { Guard } from './guard.ts'
import { resetLetter } from './letters.ts'
import { networkOf } from './network.ts'
import { type ChangeSite, mailChange } from './notices.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import type { PageAddress } from './sign-up.ts'
import { hashToken, newToken } from './tokens.ts'

const resetMs = 3_600_000
const noAccount =
  'There is no account for this address, or it is newer than the link. Ask for a new link, or for one to another address of yours.'

/**
 * Mails a link to the address. Security: whether it has an account is asked when the link is used, and not before, so that
 * no answer, time or load tells.
 */
export async function askReset(
  { db, clock, guard, post }: { db: Db; clock: Clock; guard: Guard; post: Post },
  given: string,
  { ip, pages }: { ip: string; pages: PageAddress },
): Promise<void> {
  const email = sameAddressKey(given)
  await guard.admitVisitor(ip)
  if (!(await guard.mayWrite('reset', email))) return
  const createdAt = clock.now()
  const { token, hash } = newToken()
  const expiresAt = new Date(createdAt.getTime() + resetMs)
  await db.transaction((tx) =>
    insertToken(tx, { hash, purpose: 'reset', personId: null, email, createdAt, expiresAt }),
  )
  await post.send(email, resetLetter(`${pages}/reset#${token}`))
}

/** The ways to sign in that the reset removes unless it is told to keep them, oldest first. Throws as `completeReset` does. */
export async function previewReset(deps: { db: Db; clock: Clock }, token: string): Promise<AddedWay[]> {
  const { personId } = await requireReset(deps, token)
  return await findAddedWays(deps.db, personId)
}

async function requireReset(
  { db, clock }: { db: Db; clock: Clock },
  token: string,
): Promise<{ hash: Buffer; personId: PersonId }> {
  const hash = hashToken(token)
  const found = hash && (await findToken(db, hash, 'reset', clock.now()))
  if (!hash || !found) throw new ServiceError('link_expired')
  if (!found.personId) throw new ServiceError('sign_in_failed', noAccount)
  return { hash, personId: found.personId }
}

interface Completion {
  token: string
  password: string
  /** Ids of added ways to sign in; all others that were added since the address was last proved are removed. */
  keep?: readonly string[]
}

/** Sets the password of the person behind the link, who has proved the address by it. All their sessions end. */
export async function completeReset(
  deps: { db: Db; clock: Clock; guard: Guard; passwords: Passwords; post: Post },
  { token, password, keep = [] }: Completion,
  { ip, pages }: ChangeSite,
): Promise<PersonId> {
  const { db, clock, guard, passwords } = deps
  await guard.admitNetwork(ip)
  // Before a password is hashed: a guess is not worth a hash.
  const { hash } = await requireReset(deps, token)
  const passwordHash = await passwords.hashOnce(hash, networkOf(ip), password)
  const person = await db.transaction((tx) =>
    takeReset(tx, { hash, passwordHash, keep, ip, at: clock.now() }),
  )
  await guard.passed(person.email, ip)
  await mailChange(deps, person.email, changeOf(person), { ip, pages })
  await untilKnownEverywhere()
  return person.id
}

interface Taking {
  hash: Buffer
  passwordHash: string
  keep: readonly string[]
  ip: string
  at: Date
}

/** The ways to sign in that were added since the last proof. */
interface Outcome {
  removed: AddedWay[]
  kept: AddedWay[]
}

async function takeReset(
  tx: Tx,
  { hash, passwordHash, keep, ip, at }: Taking,
): Promise<Outcome & { id: PersonId; email: string }> {
  const taken = await takeToken(tx, hash, 'reset', at)
  const person = taken?.personId ? await lockPerson(tx, taken.personId) : null
  if (!person) throw new ServiceError('link_expired')
  await updatePassword(tx, person.id, passwordHash)
  const added = await findAddedWays(tx, person.id)
  const kept = added.filter(({ id }) => keep.includes(id))
  // Security: one that somebody with a stolen session added after the preview is in no list of the person's.
  const removed = added.filter((way) => !kept.includes(way))
  await removeAddedWays(
    tx,
    person.id,
    removed.map(({ id }) => id),
  )
  await proveAgain(tx, person.id, at)
  await deleteTokens(tx, person.id, 'reset')
  await deleteTokens(tx, person.id, 'confirm')
  await endSessions(tx, person.id, null, at)
  await recordOwnDeed(tx, person, ip, { action: 'password.changed', detail: { by: 'reset' }, at })
  for (const { name: subject } of removed)
    if (subject !== null) await recordOwnDeed(tx, person, ip, { action: 'passkey.removed', subject, at })
  return { id: person.id, email: person.email, removed, kept }
}

function changeOf({ removed, kept }: Outcome): string {
  const sentences = ['A new password was chosen for your account at Posthorn, and all sessions ended.']
  if (removed.length > 0)
    sentences.push(
      `Removed, because added since you last proved this address: ${listOf(removed)}. Add again what is yours.`,
    )
  if (kept.length > 0)
    sentences.push(`Kept, though added since you last proved this address: ${listOf(kept)}.`)
  return sentences.join(' ')
}

function listOf(ways: AddedWay[]): string {
  const passkeys = ways.filter(({ name }) => name !== null).length
  return [
    ...(passkeys > 0 ? [counted(passkeys, 'passkey')] : []),
    ...(passkeys < ways.length ? ['the link to the identity provider'] : []),
  ].join(' and ')
}
