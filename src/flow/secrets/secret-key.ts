// The key that seals secrets at rest: read or made, and compared with the check value in the database.
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
  /** The file's keys. Null if there is no file. */
  keys: readonly Buffer[] | null
  /** Whether a key may be made if the database has none yet. */
  mayMake: boolean
}

/**
 * Settles the key, or refuses the start: a wrong key opens no secret of the database, and others cannot open what it seals.
 */
export async function settleSecretKey({ db }: { db: Db }, keyFile: KeyFile): Promise<SecretBox> {
  const state = await readKeyState(db)
  return state.current
    ? requireMatching(state, keyFile)
    : await db.transaction((tx) => settleFirst(tx, keyFile))
}

/** Holds the lock: if nodes start together, one makes the key, and the others find that theirs is a different one. */
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
    throw another(file) // the error only means that this is the wrong key
  }
  await writeKeyCheck(tx, box.check)
  return box
}

/** The box of the database's key. Refuses if the file does not hold that key. */
export function requireMatching(state: KeyState, { file, keys }: Pick<KeyFile, 'file' | 'keys'>): SecretBox {
  if (!keys) throw missing(file)
  const sealing = findSealing(state, keys)
  if (!sealing) throw another(file)
  return openBox(state, sealing)
}

/** The one of these keys that seals. A file may also hold a former or next key. */
export function findSealing({ current }: KeyState, keys: readonly Buffer[]): Buffer | undefined {
  return keys.find((key) => current?.equals(checkOf(key)))
}

export function isFormer({ former }: KeyState, key: Buffer): boolean {
  return former.some(({ check }) => check.equals(checkOf(key)))
}

export const verifierPurpose = 'former-key'

/** A box with this key that also accepts digests of former keys. */
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

/** The verifiers of digests made with `former`, sealed by the key that replaces it. */
export function sealVerifiers(box: SecretBox, former: SecretBox): Buffer {
  const entries = Object.entries(former.verifiers).map(([purpose, key]) => [purpose, key.toString('base64')])
  const context = former.check.toString('hex')
  return box.seal(verifierPurpose, JSON.stringify(Object.fromEntries(entries)), context)
}

/**
 * Must be called in the transaction that stores a secret, before sealing it. The key then stays valid until the transaction
 * ends. Refuses a process that missed the change of the key, as its secrets could no longer be opened.
 */
export async function requireSealingKey(tx: Tx, box: SecretBox): Promise<void> {
  if (await isOver(tx, box))
    throw new ServiceError('unavailable', 'The secret key of this node does not match the database.')
}

/** Must be called each time this node registers with the others. Refuses a node that read the key before it was changed. */
export async function requireCurrentKey({ db, secretBox }: { db: Db; secretBox: SecretBox }): Promise<void> {
  if (await db.transaction((tx) => isOver(tx, secretBox)))
    throw refused('the secret key was changed after this node read it', 'restart the node')
}

/** Waits for the end of a running change. */
async function isOver(tx: Tx, { check }: SecretBox): Promise<boolean> {
  const { current } = await shareKeyState(tx)
  // A database without a key is being settled, or belongs to a test.
  return current !== null && !current.equals(check)
}

function missing(file: string) {
  const mend = `put it there, or name its file in POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if the key is lost: posthorn secret replace`
  return refused(`the secret key of this database is missing (${file})`, mend)
}

function another(file: string) {
  const mend = `put the right key there, or name its file in POSTHORN_SECRET_KEY_FILE, ${fromWhere}; if the key is lost: posthorn secret replace`
  return refused(`${file} is not the secret key of this database`, mend)
}
