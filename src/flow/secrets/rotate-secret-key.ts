// Changes the secret key while no node runs, in steps that are each kept: broken off at any instant, it goes on when run again.
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
import { insertFormerKey, lockKeyState, readKeyState, writeKeyCheck } from '../../store/secret-keys.ts'
import { operator, recordDeed } from '../audit.ts'
import { accountPurpose, certificatePurpose } from './certificate-secret.ts'
import { dkimPurpose } from './dkim-secret.ts'
import { readKeyFile, refused, replaceKeyFile } from './key-file.ts'
import { findSealing, isFormer, sealVerifiers, verifierPurpose } from './secret-key.ts'
import { signingPurpose } from './signing-secret.ts'

interface Deps {
  db: Db
  clock: Clock
  /** Where the key is. */
  file: string
  /** Is told of each step once it is kept. */
  progress(words: string): void
}

export interface Rotation {
  /** `tidied`: all that was left to do was taking the former key out of the file. */
  status: 'rotated' | 'tidied'
  /** How many secrets were sealed anew in this run. */
  resealed: number
  /** Those that no key opened before, either: they stay as they are. */
  unopened: string[]
}

/** What each kind is sealed for. */
export const purposes: Record<SecretKind, string> = {
  'DKIM key': dkimPurpose,
  'webhook secret': signingPurpose,
  'former webhook secret': signingPurpose,
  'account key': accountPurpose,
  'certificate key': certificatePurpose,
  verifiers: verifierPurpose,
}

/**
 * The next key is put beside the present one in the file; all secrets are sealed anew in one commit, in which the present
 * one ends; then that leaves the file. Refuses while a node runs: it has the present key.
 */
export async function rotateSecretKey(deps: Deps): Promise<Rotation> {
  const { db, file } = deps
  await requireNoNodes(db)
  const state = await readKeyState(db)
  const keys = (await readKeyFile(file)) ?? []
  const present = findSealing(state, keys)
  if (!present) throw refused(`${file} does not hold the key of this database`, 'run this where it is')
  if (keys.some((key) => isFormer(state, key))) {
    await tidy(deps, keys, present)
    return { status: 'tidied', resealed: 0, unopened: [] }
  }
  const next = await writeNext(deps, keys, present)
  const passed = await reseal(deps, { present, next })
  await tidy(deps, (await readKeyFile(file)) ?? [], next)
  return { status: 'rotated', ...passed }
}

/** Refuses while nodes run. */
export async function requireNoNodes(db: Queryable): Promise<void> {
  const living = await listLivingNodes(db)
  if (living.length > 0)
    throw new ServiceError(
      'unavailable',
      `nodes run and have the key (${living.join(', ')}): stop them first`,
    )
}

/** Puts the next key into the file. What is on disk first is never lost. */
async function writeNext(
  { file, progress }: Deps,
  keys: readonly Buffer[],
  present: Buffer,
): Promise<Buffer> {
  // A second key in the file is of a change that was broken off, or of an operator whose file we may not write.
  const known = keys.find((key) => key !== present)
  if (known) return known
  const key = randomBytes(32)
  await replaceKeyFile(file, [present, key]).catch((error: Error) => {
    const mend = 'add a second line yourself (openssl rand -hex 32), then run this again'
    throw refused(`nothing is changed, for ${file} cannot be written (${error.message})`, mend)
  })
  progress(`the next key stands beside the present one in ${file}`)
  return key
}

interface Keys {
  present: Buffer
  next: Buffer
}

/** Seals all secrets anew, in the commit in which the present key ends. */
async function reseal(
  { db, clock, progress }: Deps,
  keys: Keys,
): Promise<Pick<Rotation, 'resealed' | 'unopened'>> {
  const passed = { resealed: 0, unopened: [] as string[] }
  const [present, next] = [new SecretBox(keys.present), new SecretBox(keys.next)]
  await db.transaction(async (tx) => {
    // Nobody stores a secret meanwhile. A node that joins from now on waits for the commit, and is refused.
    const { current } = await lockKeyState(tx)
    await requireNoNodes(tx)
    if (!current?.equals(present.check))
      throw new ServiceError('unavailable', 'the secret key is being changed by another command')
    for (const kind of secretKinds) {
      const { resealed, unopened } = await resealKind(tx, kind, { present, next })
      if (resealed > 0) progress(`sealed anew: ${resealed} of the kind ${kind}`)
      passed.resealed += resealed
      passed.unopened.push(...unopened)
    }
    const at = clock.now()
    await insertFormerKey(tx, { check: current, sealedVerifiers: sealVerifiers(next, present), at })
    await writeKeyCheck(tx, next.check)
    await recordDeed(tx, null, operator, { action: 'secret.rotated', subject: 'secret key', at })
  })
  progress('the next key seals from now on')
  return passed
}

async function resealKind(tx: Tx, kind: SecretKind, { present, next }: Record<keyof Keys, SecretBox>) {
  const purpose = purposes[kind]
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

/** Null if the key does not open it. */
export function openOrNull(
  box: SecretBox,
  purpose: string,
  { sealed, context }: SealedSecret,
): Buffer | null {
  try {
    return box.open(purpose, sealed, context)
  } catch {
    return null // it says no more than that
  }
}

/** Leaves the key that seals in the file, alone. */
async function tidy({ file, progress }: Deps, keys: readonly Buffer[], sealing: Buffer): Promise<void> {
  await replaceKeyFile(file, [sealing]).catch((error: Error) => {
    const line = keys.findIndex((key) => key.equals(sealing)) + 1
    const mend = `leave line ${line} alone in it yourself; after that, running this again begins another change`
    throw refused(`the change is complete, but ${file} cannot be written (${error.message})`, mend)
  })
  progress(`the former key is no longer in ${file}`)
}
