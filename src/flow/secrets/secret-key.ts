// The key that seals secrets at rest: read or made, and held against the check value that the database keeps of it.
import { ServiceError } from '../../base/errors.ts'
import { checkOf, SecretBox, type Verifiers } from '../../base/secret-box.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findSealed } from '../../store/database-identity.ts'
import {
  type KeyState,
  lockKeyState,
  readKeyState,
  shareKeyState,
  writeKeyCheck,
} from '../../store/secret-keys.ts'
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
  await writeKeyCheck(tx, box.check)
  return box
}

/** The box of the key; refused if the file does not hold that of the database. */
export function requireMatching(state: KeyState, { file, keys }: Pick<KeyFile, 'file' | 'keys'>): SecretBox {
  if (!keys) throw missing(file)
  const sealing = findSealing(state, keys)
  if (!sealing) throw another(file)
  return openBox(state, sealing)
}

/** The one of these keys that seals; a file may hold a former one, or the next one, beside it. */
export function findSealing({ current }: KeyState, keys: readonly Buffer[]): Buffer | undefined {
  return keys.find((key) => current?.equals(checkOf(key)))
}

export function isFormer({ former }: KeyState, key: Buffer): boolean {
  return former.some(({ check }) => check.equals(checkOf(key)))
}

export const verifierPurpose = 'former-key'

/** A box with this key, which believes the digests of former ones. */
export function openBox({ former }: KeyState, key: Buffer): SecretBox {
  const box = new SecretBox(key)
  const verifiers = former.flatMap(({ check, sealedVerifiers: sealed }) => {
    if (!sealed) return []
    const opened = box.open(verifierPurpose, sealed, check.toString('hex')).toString()
    return [decode(JSON.parse(opened) as Record<keyof Verifiers, string>)]
  })
  box.believe(verifiers)
  return box
}

function decode(encoded: Record<keyof Verifiers, string>): Verifiers {
  const entries = Object.entries(encoded).map(([purpose, key]) => [purpose, Buffer.from(key, 'base64')])
  return Object.fromEntries(entries) as Verifiers
}

/** What knows the digests of the key that `former` seals with, sealed by the one that comes after it. */
export function sealVerifiers(box: SecretBox, former: SecretBox): Buffer {
  const entries = Object.entries(former.verifiers).map(([purpose, key]) => [purpose, key.toString('base64')])
  const context = former.check.toString('hex')
  return box.seal(verifierPurpose, JSON.stringify(Object.fromEntries(entries)), context)
}

/**
 * To be asked within the transaction that stores a secret, before that is sealed: the key does not end until it is over.
 * Refuses a process that has missed the end of its key, and would seal what nobody opens any more.
 */
export async function requireSealingKey(tx: Tx, box: SecretBox): Promise<void> {
  if (await isOver(tx, box))
    throw new ServiceError('unavailable', 'The secret key of this node is not that of the database.')
}

/** To be asked each time that others see this node: refuses one that has read the key before it was changed. */
export async function requireCurrentKey({ db, secretBox }: { db: Db; secretBox: SecretBox }): Promise<void> {
  if (await db.transaction((tx) => isOver(tx, secretBox)))
    throw refused('the secret key was changed after this node read it', 'start it again')
}

/** Waits for the end of a change that is under way. */
async function isOver(tx: Tx, { check }: SecretBox): Promise<boolean> {
  const { current } = await shareKeyState(tx)
  // A database that has no key yet is being settled, or is a test's.
  return current !== null && !current.equals(check)
}

function missing(file: string) {
  const mend = `put it there, or name it by POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if it is lost: posthorn secret replace`
  return refused(`the secret key of this database is not there (${file})`, mend)
}

function another(file: string) {
  const mend = `put its own there, or name it by POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if that is lost: posthorn secret replace`
  return refused(`${file} is not the secret key of this database`, mend)
}
