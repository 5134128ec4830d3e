// Changes the secret key while no node runs, in separate commits. If interrupted at any instant, it resumes when run again.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { SecretBox } from '../../base/secret-box.ts'
import type { Db, Queryable, Tx } from '../../postgres/db.ts'
import { listLivingNodes } from '../../store/nodes.ts'
import {
  eachSealed,
  replaceSealed,
  type SealedSecret,
  type SecretKind,
  secretKinds,
} from '../../store/sealed-secrets.ts'
import { insertFormerKey, lockKeyState, writeKeyCheck } from '../../store/secret-keys.ts'
import { operator, recordAction } from '../audit.ts'
import { accountPurpose, certificatePurpose } from './certificate-secret.ts'
import { dkimPurpose } from './dkim-secret.ts'
import { readKeyFile, refused, replaceKeyFile } from './key-file.ts'
import { findSealing, isFormer, sealVerifiers, verifierPurpose } from './secret-key.ts'
import { signingPurpose } from './signing-secret.ts'

interface Deps {
  db: Db
  clock: Clock
  /** The file that holds the key. */
  file: string
  /** Receives a description of each step. */
  progress(words: string): void
}

export interface Rotation {
  /** `tidied`: only the former key was still to be removed from the file. */
  status: 'rotated' | 'tidied'
  /** How many secrets this run sealed again. */
  resealed: number
  /** Secrets that no key opened before either. They stay as they are. */
  unopened: string[]
}

/** The purpose that each kind is sealed for. */
export const sealPurposes: Record<SecretKind, string> = {
  'DKIM key': dkimPurpose,
  'webhook secret': signingPurpose,
  'former webhook secret': signingPurpose,
  'account key': accountPurpose,
  'certificate key': certificatePurpose,
  verifiers: verifierPurpose,
}

/**
 * Adds the next key to the file. Then seals all secrets again in one commit, which also retires the present key. Then
 * removes the present key from the file. Refuses while a node runs, as the node has the present key.
 */
export async function rotateSecretKey(deps: Deps): Promise<Rotation> {
  const { db, progress } = deps
  const rotation = await db.transaction((tx) => changeKey(tx, deps))
  if (rotation.status === 'rotated') progress('the new key seals from now on')
  await db.transaction((tx) => tidy(tx, deps))
  return rotation
}

/** Holds the lock: no other process changes the file or stores a secret, and a node that joins waits and is refused. */
async function changeKey(tx: Tx, deps: Deps): Promise<Rotation> {
  const { file, clock } = deps
  const state = await lockKeyState(tx)
  await requireNoNodes(tx)
  const keys = (await readKeyFile(file)) ?? []
  const present = findSealing(state, keys)
  if (!present)
    throw refused(
      `${file} does not hold the key of this database`,
      'run the command on the machine that has the key file',
    )
  const others = keys.filter((key) => !key.equals(present))
  if (others.some((key) => isFormer(state, key))) return { status: 'tidied', resealed: 0, unopened: [] }
  // A second key is left over from an interrupted change, or the operator added it because we may not write the file.
  const next = others[0] ?? (await writeNext(deps, present))
  const boxes = { present: new SecretBox(present), next: new SecretBox(next) }
  const passed = await resealAll(tx, boxes, deps)
  const [at, check] = [clock.now(), boxes.present.check]
  await insertFormerKey(tx, { check, sealedVerifiers: sealVerifiers(boxes.next, boxes.present), at })
  await writeKeyCheck(tx, boxes.next.check)
  await recordAction(tx, null, operator, { action: 'secret.rotated', subject: 'secret key', at })
  return { status: 'rotated', ...passed }
}

/** Refuses while nodes run. */
export async function requireNoNodes(db: Queryable): Promise<void> {
  const living = await listLivingNodes(db)
  if (living.length > 0)
    throw new ServiceError(
      'unavailable',
      `nodes with the secret key are running (${living.join(', ')}): stop them first`,
    )
}

/** Adds a new key to the file. It is on disk before it is used, so it is never lost. */
async function writeNext({ file, progress }: Deps, present: Buffer): Promise<Buffer> {
  const key = randomBytes(32)
  await replaceKeyFile(file, [present, key]).catch((error: Error) => {
    const mend = 'add a second line yourself (openssl rand -hex 32), then run the command again'
    throw refused(`${file} cannot be written (${error.message}), and nothing was changed`, mend)
  })
  progress(`added the new key to ${file}`)
  return key
}

interface Boxes {
  present: SecretBox
  next: SecretBox
}

async function resealAll(
  tx: Tx,
  boxes: Boxes,
  { progress }: Deps,
): Promise<Pick<Rotation, 'resealed' | 'unopened'>> {
  const passed = { resealed: 0, unopened: [] as string[] }
  for (const kind of secretKinds) {
    const { resealed, unopened } = await resealKind(tx, kind, boxes)
    if (resealed > 0) progress(`sealed with the new key: ${kind} (${resealed})`)
    passed.resealed += resealed
    passed.unopened.push(...unopened)
  }
  return passed
}

async function resealKind(tx: Tx, kind: SecretKind, { present, next }: Boxes) {
  const purpose = sealPurposes[kind]
  const passed = { resealed: 0, unopened: [] as string[] }
  for await (const secret of eachSealed(tx, kind)) {
    const { context } = secret
    const plain = openOrNull(present, purpose, secret)
    if (plain) {
      await replaceSealed(tx, kind, secret, next.seal(purpose, plain, context))
      passed.resealed++
    } else passed.unopened.push(`${kind} ${context.slice(0, 100)}`)
  }
  return passed
}

/** Null if the key does not open the secret. */
export function openOrNull(
  box: SecretBox,
  purpose: string,
  { sealed, context }: SealedSecret,
): Buffer | null {
  try {
    return box.open(purpose, sealed, context)
  } catch {
    return null // the error gives no further reason
  }
}

/** Leaves only the sealing key in the file. Holds the lock, as another command may be changing the file. */
async function tidy(tx: Tx, { file, progress }: Deps): Promise<void> {
  const state = await lockKeyState(tx)
  const keys: readonly Buffer[] = (await readKeyFile(file)) ?? []
  const sealing = findSealing(state, keys)
  if (!sealing || keys.length === 1) return
  await replaceKeyFile(file, [sealing]).catch((error: Error) => {
    const line = keys.indexOf(sealing) + 1
    const mend = `remove all lines but line ${line} yourself; after that, running the command again starts another rotation`
    throw refused(`the rotation is complete, but ${file} cannot be written (${error.message})`, mend)
  })
  progress(`removed the former key from ${file}`)
}
