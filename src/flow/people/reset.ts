// Resets a lost password by a mailed link, whose use ends all sessions.
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { ServiceError } from '../../base/errors.ts'
import type { PersonId } from '../../base/ids.ts'
import { networkOf } from '../../base/ip-address.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { type Added, findAdded, removeAddedWays } from '../../store/accounts/added.ts'
import { lockPerson, proveAgain, updatePassword } from '../../store/people/person-credentials.ts'
import { deleteTokens, findToken, insertToken, takeToken } from '../../store/people/person-tokens.ts'
import { endSessions } from '../../store/people/sessions.ts'
import { recordOwnActions } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import type { Guard } from './guard.ts'
import { resetLetter } from './letters.ts'
import { endThings } from './made.ts'
import { type ChangeSite, mailChange } from './notices.ts'
import type { Passwords } from './passwords.ts'
import type { Post } from './post.ts'
import type { PageAddress } from './sign-up.ts'
import { hashToken, newToken } from './tokens.ts'

const resetMs = 3_600_000
/** The maximum of listed entries of each kind. */
export const maxListed = 100
const noAccount =
  'There is no account for this address, or it is newer than this link. Request a new link, or use another of your addresses.'

/**
 * Mails a link to the address. Security: only the use of the link checks for an account, so no answer, time or load reveals
 * it.
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

/**
 * The entries that the reset removes by default: the oldest 100 of each kind, and the count of the others. Throws as
 * `completeReset` does. Security: the oldest come first, so that a thief who makes many cannot hide the person's own.
 */
export async function previewReset(
  deps: { db: Db; clock: Clock },
  token: string,
): Promise<{ added: Added[]; unlisted: number }> {
  const { personId } = await requireReset(deps, token)
  const all = await findAdded(deps.db, { personId, at: deps.clock.now() })
  const added = [...Map.groupBy(all, ({ kind }) => kind).values()].flatMap((some) => some.slice(0, maxListed))
  return { added, unlisted: all.length - added.length }
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
  /** Ids of entries of the preview. All other entries added since the address was last proved are removed. */
  keep?: readonly string[]
}

/** Sets the password of the link's person, whose use of the link proves the address. All their sessions end. */
export async function completeReset(
  deps: { db: Db; clock: Clock; guard: Guard; passwords: Passwords; post: Post },
  { token, password, keep = [] }: Completion,
  { ip, pages }: ChangeSite,
): Promise<PersonId> {
  const { db, clock, guard, passwords } = deps
  await guard.admitNetwork(ip)
  // Checked before a password is hashed: a guessed link is not worth a hash.
  const { hash, personId } = await requireReset(deps, token)
  const passwordHash = await passwords.hashOnce(hash, networkOf(ip), password)
  const person = await db.transaction((tx) =>
    takeReset(tx, { hash, personId, passwordHash, keep, ip, at: clock.now() }),
  )
  await guard.passed(person.email, ip)
  await mailChange(deps, person.email, changeOf(person), { ip, pages })
  await untilKnownEverywhere()
  return person.id
}

interface Taking {
  hash: Buffer
  personId: PersonId
  passwordHash: string
  keep: readonly string[]
  ip: string
  at: Date
}

/** The entries added since the last proof, by what the reset did with them. */
interface Outcome {
  removed: Added[]
  kept: Added[]
}

async function takeReset(
  tx: Tx,
  { hash, personId, passwordHash, keep, ip, at }: Taking,
): Promise<Outcome & { id: PersonId; email: string }> {
  // Locks the person first. If two links are used at once, the second waits and finds that the first has ended it.
  const person = await lockPerson(tx, personId)
  const taken = await takeToken(tx, hash, 'reset', at)
  if (!person || taken?.personId !== person.id) throw new ServiceError('link_expired')
  await updatePassword(tx, person.id, passwordHash)
  const added = await findAdded(tx, { personId: person.id, at })
  const isKept = ({ id }: Added) => keep.includes(id)
  // Security: this also removes an entry that a thief with a stolen session added after the preview.
  const removed = added.filter((one) => !isKept(one))
  await proveAgain(tx, person.id, at)
  await deleteTokens(tx, person.id, 'reset')
  await deleteTokens(tx, person.id, 'confirm')
  await endSessions(tx, person.id, null, at)
  await remove(tx, { ...person, ip }, removed, at)
  return { id: person.id, email: person.email, removed, kept: added.filter(isKept) }
}

/** Removes ways to sign in and ends what was made, as the removal of a member does. The audit log records all of it. */
async function remove(
  tx: Tx,
  { id: personId, email, ip }: { id: PersonId; email: string; ip: string },
  removed: readonly Added[],
  at: Date,
): Promise<void> {
  const idsOf = (wanted: Added['kind']) => removed.filter(({ kind }) => kind === wanted).map(({ id }) => id)
  const detail = { by: 'reset' }
  await removeAddedWays(tx, personId, [...idsOf('passkey'), ...idsOf('identity')])
  const passkeys = removed.flatMap(({ kind, name }) => (kind === 'passkey' && name !== null ? [name] : []))
  await recordOwnActions(tx, { id: personId, email }, ip, [
    { action: 'password.changed', detail, at },
    ...passkeys.map((subject) => ({ action: 'passkey.removed' as const, subject, detail, at })),
  ])
  const made = { invitations: idsOf('invitation'), keys: idsOf('key'), webhooks: idsOf('webhook') }
  await endThings(tx, { name: email, ip }, made, { at, detail })
}

function changeOf({ removed, kept }: Outcome): string {
  const sentences = ['A new password was chosen for your account at Posthorn, and all sessions ended.']
  if (removed.length > 0)
    sentences.push(
      `Removed, because it was added after you last proved this address: ${listOf(removed)}. If some of it was yours, add it again.`,
    )
  if (removed.some(({ organization }) => organization !== null))
    sentences.push('The audit log of each organization names the keys, webhooks and invitations.')
  if (kept.length > 0)
    sentences.push(`Kept, though it was added after you last proved this address: ${listOf(kept)}.`)
  return sentences.join(' ')
}

const words = { passkey: 'passkey', key: 'API key', webhook: 'webhook', invitation: 'open invitation' }
const list = new Intl.ListFormat('en-GB', { type: 'conjunction' })

function listOf(entries: readonly Added[]): string {
  const countOf = (wanted: Added['kind']) => entries.filter(({ kind }) => kind === wanted).length
  const kinds = Object.entries(words) as [keyof typeof words, string][]
  return list.format([
    ...kinds.filter(([kind]) => countOf(kind) > 0).map(([kind, word]) => counted(countOf(kind), word)),
    ...(countOf('identity') > 0 ? ['the link to the identity provider'] : []),
  ])
}
