// Changes the secret key while nodes run, in steps that are each kept: broken off at any instant, it goes on when run again.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { ServiceError } from '../base/errors.ts'
import { checkOf, SecretBox } from '../base/secret-box.ts'
import { othersPollMs } from '../base/signal.ts'
import type { Db, Tx } from '../postgres/db.ts'
import { listSealed, replaceSealed, type SecretKind, secretKinds } from '../store/sealed-secrets.ts'
import {
  announceKey,
  endFormerKeys,
  insertFormerKey,
  type KeyState,
  listNodeKeys,
  lockKeyState,
  lockRotation,
  type NodeKeys,
  readKeyState,
  writeKeyCheck,
} from '../store/secret-keys.ts'
import { operator, recordDeed } from './audit.ts'
import { accountPurpose, certificatePurpose } from './certificate-secret.ts'
import { dkimPurpose } from './dkim-secret.ts'
import { readKeyFile, refused, replaceKeyFile } from './key-file.ts'
import { chooseKeys, followKeys, sealVerifiers, verifierPurpose } from './secret-key.ts'
import { signingPurpose } from './signing-secret.ts'

interface Deps {
  db: Db
  clock: Clock
  /** Where the keys are. */
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

const batchSize = 200
/** A node reads its file again each second. */
const nodesWaitMs = 15_000
const lockWaitMs = 5_000

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
 * The next key is put beside the present one in the file; once every living node has it, it seals, and the former one opens;
 * all secrets are sealed anew; then the former one ends, and leaves the file. Refuses, with all that was done kept, while a
 * living node does not have the next key.
 */
export async function rotateSecretKey(deps: Deps): Promise<Rotation> {
  const lock = await takeLock(deps.db)
  try {
    const state = await readKeyState(deps.db)
    const keys = await requireKeys(deps, state)
    if (!isUnderWay(state)) {
      const ended = keys.filter((key) => state.former.some(({ check }) => check.equals(checkOf(key))))
      if (ended.length > 0) return await tidy(deps, state)
      await switchKeys(deps, await announceNext(deps, state, keys))
    }
    return await resealAll(deps)
  } finally {
    lock.release()
  }
}

/** The lock of a command that was killed falls once the server has seen its connection end. */
async function takeLock(db: Db): Promise<{ release(): void }> {
  const untilMs = performance.now() + lockWaitMs
  for (;;) {
    const lock = await lockRotation(db)
    if (lock) return lock
    if (performance.now() > untilMs)
      throw new ServiceError('unavailable', 'the secret key is being changed by another command')
    await pause(othersPollMs)
  }
}

/** Whether something may still be sealed with a former key. */
export function isUnderWay({ former }: Pick<KeyState, 'former'>): boolean {
  return former.some(({ endedAt }) => endedAt === null)
}

/** The keys of the file; its machine is the one to do it from. */
async function requireKeys({ file }: Deps, state: KeyState): Promise<Buffer[]> {
  const keys = (await readKeyFile(file)) ?? []
  if (chooseKeys(state, keys).status !== 'complete')
    throw refused(`${file} does not hold the keys of this database`, 'run this where they are')
  return keys
}

/** Puts the next key into the file, if it is not there, and tells the nodes. What is on disk first is never lost. */
async function announceNext(
  { db, file, progress }: Deps,
  { current, next }: KeyState,
  keys: readonly Buffer[],
): Promise<Buffer> {
  const others = keys.filter((key) => !checkOf(key).equals(current!))
  // Whoever wrote a second key into a file that we may not write has chosen it.
  const known = others.find((key) => next && checkOf(key).equals(next)) ?? others[0]
  const key = known ?? randomBytes(32)
  if (!known) {
    await replaceKeyFile(file, [...keys, key]).catch((error: Error) => {
      const mend = 'add a second line yourself (openssl rand -hex 32), then run this again'
      throw refused(`nothing is changed, for ${file} cannot be written (${error.message})`, mend)
    })
    progress(`the next key stands beside the present one in ${file}`)
  }
  await announceKey(db.writer, checkOf(key))
  progress('the next key is announced to the nodes')
  return key
}

/** Once all living nodes have the next key it seals, and the one before it opens what it has sealed. */
async function switchKeys(deps: Deps, next: Buffer): Promise<void> {
  const { db, clock, file, progress } = deps
  const check = checkOf(next)
  const lacking = ({ checks }: NodeKeys) => !checks?.some((one) => one.equals(check))
  await untilNodes(
    db,
    lacking,
    `copy ${file} over the secret key file of each (or, where they are of an older version, update them)`,
  )
  await db.transaction(async (tx) => {
    const state = await lockKeyState(tx)
    const late = (await listNodeKeys(tx)).filter(lacking)
    if (late.length > 0) throw waiting(late, `copy ${file} over the secret key file of each`)
    const keys = await requireKeys(deps, state)
    const former = keys.find((key) => checkOf(key).equals(state.current!))!
    const sealedVerifiers = sealVerifiers(new SecretBox(next), new SecretBox(former))
    const replacedAt = clock.now()
    await insertFormerKey(tx, { check: state.current!, sealedVerifiers, replacedAt, endedAt: null })
    await writeKeyCheck(tx, check)
    await recordDeed(tx, null, operator, { action: 'secret.rotated', subject: 'secret key', at: replacedAt })
  })
  progress('the next key seals from now on')
}

/** Seals all secrets anew, ends the former keys, and takes them out of the file. */
async function resealAll(deps: Deps): Promise<Rotation> {
  const { db, clock, progress } = deps
  const state = await readKeyState(db)
  const box = await openBox(deps, state)
  const passed = { resealed: 0, unopened: [] as string[] }
  for (const kind of secretKinds) {
    const { resealed } = await resealKind({ db, box }, kind)
    passed.resealed += resealed
    if (resealed > 0) progress(`sealed anew: ${resealed} of the kind ${kind}`)
  }
  const isOther = ({ checks }: NodeKeys) => !checks?.[0]?.equals(state.current!)
  await untilNodes(db, isOther, `copy ${deps.file} over the secret key file of each`)
  await db.transaction(async (tx) => {
    // Nobody stores a secret meanwhile: what is found now is all that there is.
    await lockKeyState(tx)
    for (const kind of secretKinds) {
      const { resealed, unopened } = await resealIn(tx, box, kind)
      passed.resealed += resealed
      passed.unopened.push(...unopened)
    }
    await endFormerKeys(tx, clock.now())
  })
  progress('nothing is sealed with the former key any more')
  await tidy(deps, await readKeyState(db))
  return { status: 'rotated', ...passed }
}

async function openBox(deps: Deps, state: KeyState): Promise<SecretBox> {
  const ring = chooseKeys(state, await requireKeys(deps, state))
  if (ring.status !== 'complete') throw new Error('the keys were there a moment ago')
  const box = new SecretBox(ring.keys[0])
  followKeys(box, state, ring.keys)
  return box
}

/** In small commits, so that nobody waits long for a row. */
async function resealKind(
  { db, box }: { db: Db; box: SecretBox },
  kind: SecretKind,
): Promise<{ resealed: number }> {
  let resealed = 0
  let after: string | null = ''
  while (after !== null) {
    const step = await db.transaction((tx) => resealStep(tx, box, { kind, after: after! }))
    resealed += step.resealed
    after = step.last
  }
  return { resealed }
}

/** In one transaction, for what is left. */
async function resealIn(tx: Tx, box: SecretBox, kind: SecretKind) {
  const passed = { resealed: 0, unopened: [] as string[] }
  let after: string | null = ''
  while (after !== null) {
    const step = await resealStep(tx, box, { kind, after })
    passed.resealed += step.resealed
    passed.unopened.push(...step.unopened)
    after = step.last
  }
  return passed
}

/** Seals the next ones anew that another key has sealed; `last` is null at the end. */
async function resealStep(tx: Tx, box: SecretBox, { kind, after }: { kind: SecretKind; after: string }) {
  const purpose = purposes[kind]
  const secrets = await listSealed(tx, kind, after, batchSize)
  const step = { resealed: 0, unopened: [] as string[], last: null as string | null }
  for (const secret of secrets) {
    const { context, sealed } = secret
    if (box.isCurrent(purpose, sealed, context)) continue
    const plain = openOrNull(box, purpose, secret)
    if (!plain) {
      step.unopened.push(`${kind} ${context.slice(0, 100)}`)
      continue
    }
    await replaceSealed(tx, kind, secret, box.seal(purpose, plain, context))
    step.resealed++
  }
  if (secrets.length === batchSize) step.last = secrets.at(-1)!.context
  return step
}

/** Null where none of the keys opens it. */
export function openOrNull(
  box: SecretBox,
  purpose: string,
  { sealed, context }: { sealed: Buffer; context: string },
): Buffer | null {
  try {
    return box.open(purpose, sealed, context)
  } catch {
    return null // it says no more than that
  }
}

/** Leaves the key that seals in the file, alone. */
async function tidy({ file, progress }: Deps, { current }: KeyState): Promise<Rotation> {
  const keys = (await readKeyFile(file)) ?? []
  const left = keys.filter((key) => checkOf(key).equals(current!))
  if (left.length < keys.length) {
    await replaceKeyFile(file, left).catch((error: Error) => {
      const line = keys.findIndex((key) => left.includes(key)) + 1
      const mend = `leave line ${line} alone in it yourself; after that, running this again begins another change`
      throw refused(`the change is complete, but ${file} cannot be written (${error.message})`, mend)
    })
    progress(`the former key is no longer in ${file}`)
  }
  return { status: 'tidied', resealed: 0, unopened: [] }
}

/** Waits a while for the nodes to follow; refuses while there are any for which `isLate` holds. */
async function untilNodes(db: Db, isLate: (node: NodeKeys) => boolean, mend: string): Promise<void> {
  const untilMs = performance.now() + nodesWaitMs
  for (;;) {
    const late = (await listNodeKeys(db)).filter(isLate)
    if (late.length === 0) return
    if (performance.now() > untilMs) throw waiting(late, mend)
    await pause(othersPollMs)
  }
}

function waiting(late: readonly NodeKeys[], mend: string): ServiceError {
  const named = late.map(({ id, version, operator: address }) => {
    const known = [version, address && `operator listener ${address}`].filter((word) => word)
    return `node ${id}${known.length > 0 ? ` (${known.join(', ')})` : ''}`
  })
  return new ServiceError(
    'unavailable',
    `the secret key is not known yet to ${named.join(', ')}: ${mend}, then run this again`,
  )
}
