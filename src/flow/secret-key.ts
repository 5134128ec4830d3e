// The key that seals secrets at rest: read or made, and held against the check value that the database keeps of it.
import { ServiceError } from '../base/errors.ts'
import { checkOf, SecretBox, type Verifiers } from '../base/secret-box.ts'
import type { Db, Tx } from '../postgres/db.ts'
import { findSealed } from '../store/database-identity.ts'
import {
  type KeyState,
  lockKeyState,
  readKeyState,
  shareKeyState,
  writeKeyCheck,
} from '../store/secret-keys.ts'
import { openDkimKey } from './dkim-secret.ts'
import { fromWhere, makeKeyFile, refused } from './key-file.ts'
import { openSigningSecret } from './signing-secret.ts'

interface KeyFile {
  file: string
  /** What is in it; null where there is none. */
  keys: readonly Buffer[] | null
  /** Whether a key may be made where the database has none yet. */
  mayMake: boolean
}

/** Under another key nothing of the database opens, and what it seals nobody else can open: that stops every start. */
export async function settleSecretKey({ db }: { db: Db }, keyFile: KeyFile): Promise<SecretBox> {
  const state = await readKeyState(db)
  return state.current
    ? requireMatching(state, keyFile)
    : await db.transaction((tx) => settleFirst(tx, keyFile))
}

/** Under the lock: of nodes that start together one makes the key, and the others see that it is not theirs. */
async function settleFirst(tx: Tx, keyFile: KeyFile): Promise<SecretBox> {
  const state = await lockKeyState(tx)
  if (state.current) return requireMatching(state, keyFile)
  const { file, keys, mayMake } = keyFile
  const sealed = await findSealed(tx)
  if (!keys && (!mayMake || sealed.dkimKey || sealed.webhook)) throw missing(file)
  const box = new SecretBox(keys?.[0] ?? (await makeKeyFile(file)))
  try {
    if (sealed.dkimKey) openDkimKey(box, sealed.dkimKey)
    if (sealed.webhook) openSigningSecret(box, sealed.webhook.id, sealed.webhook.sealed)
  } catch {
    throw another(file) // it says no more than that the key is not the one
  }
  await writeKeyCheck(tx, box.checks[0]!)
  return box
}

/** The box of the keys; refused where these are not the ones of the database. */
export function requireMatching(state: KeyState, { file, keys }: Pick<KeyFile, 'file' | 'keys'>): SecretBox {
  if (!keys) throw missing(file)
  const ring = chooseKeys(state, keys)
  if (ring.status === 'another') throw another(file)
  if (ring.status === 'incomplete') throw incomplete(file)
  const box = new SecretBox(ring.keys[0])
  followKeys(box, state, ring.keys)
  return box
}

export type KeyRing =
  | { status: 'complete'; keys: readonly [Buffer, ...Buffer[]] }
  /** The key that seals is not there. */
  | { status: 'another' }
  /** One is missing under which something is still sealed. */
  | { status: 'incomplete' }

/** Out of the keys of a file those that the database has a use for: the one that seals, former ones, the next one. */
export function chooseKeys({ current, next, former }: KeyState, keys: readonly Buffer[]): KeyRing {
  const find = (check: Buffer) => keys.find((key) => checkOf(key).equals(check))
  const sealing = current && find(current)
  if (!sealing) return { status: 'another' }
  const needed = former.filter(({ endedAt }) => endedAt === null).map(({ check }) => find(check))
  if (needed.includes(undefined)) return { status: 'incomplete' }
  const others = [...needed, next ? find(next) : undefined].filter((key) => key !== undefined)
  return { status: 'complete', keys: [sealing, ...others] }
}

export const verifierPurpose = 'former-key'

/** Has the box use these keys, and what knows the digests of former ones. */
export function followKeys(box: SecretBox, { former }: KeyState, keys: readonly [Buffer, ...Buffer[]]): void {
  const opener = new SecretBox(keys[0])
  opener.use(keys, [])
  const verifiers = former.flatMap(({ check, sealedVerifiers: sealed }) => {
    if (!sealed) return []
    const opened = opener.open(verifierPurpose, sealed, check.toString('hex')).toString()
    return [decode(JSON.parse(opened) as Record<keyof Verifiers, string>)]
  })
  box.use(keys, verifiers)
}

function decode(encoded: Record<keyof Verifiers, string>): Verifiers {
  const entries = Object.entries(encoded).map(([purpose, key]) => [purpose, Buffer.from(key, 'base64')])
  return Object.fromEntries(entries) as Verifiers
}

/** What knows the digests of the key that `former` seals with, sealed by the one that comes after it. */
export function sealVerifiers(box: SecretBox, former: SecretBox): Buffer {
  const entries = Object.entries(former.verifiers).map(([purpose, key]) => [purpose, key.toString('base64')])
  const context = former.checks[0]!.toString('hex')
  return box.seal(verifierPurpose, JSON.stringify(Object.fromEntries(entries)), context)
}

/**
 * To be asked within the transaction that stores a secret, before that is sealed: no key ends until it is over. Refuses where
 * this node has missed that its key has ended, and would seal what nobody opens any more.
 */
export async function requireSealingKey(tx: Tx, box: SecretBox): Promise<void> {
  const { current, former } = await shareKeyState(tx)
  const used = [current, ...former.filter(({ endedAt }) => endedAt === null).map(({ check }) => check)]
  const [own] = box.checks
  // A database that has no key yet is being settled, or is a test's.
  if (current && !used.some((check) => check?.equals(own!)))
    throw new ServiceError('unavailable', 'The secret key of this node is not that of the database.')
}

function missing(file: string) {
  const mend = `put it there, or name it by POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if it is lost: posthorn secret replace`
  return refused(`the secret key of this database is not there (${file})`, mend)
}

function another(file: string) {
  const mend = `put its own there, or name it by POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if that is lost: posthorn secret replace`
  return refused(`${file} is not the secret key of this database`, mend)
}

function incomplete(file: string) {
  const mend = `it is being changed (posthorn secret rotate): put both keys there, ${fromWhere}`
  return refused(`${file} lacks the former secret key, which is still needed`, mend)
}
