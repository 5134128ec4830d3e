// Keys of the deployment's own domain: made at the first start, rotated by the operator, used once DNS shows them.
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { dkimRecordOf, writeZoneLine } from '../../dns/domain-records.ts'
import { evaluate, selectorsSeen } from '../../dns/evaluate-domain.ts'
import { lookupRecords } from '../../dns/lookup-domain.ts'
import type { Resolver } from '../../dns/resolver.ts'
import type { DkimAlgorithm, DkimKey } from '../../mailauth/dkim-sign.ts'
import type { Db, Queryable } from '../../postgres/db.ts'
import {
  activateFoundKeys,
  insertDkimKey,
  type KeyInLifeRow,
  listDkimKeys,
  trimRetiredKeys,
} from '../../store/domains/dkim-keys.ts'
import { lockProof } from '../../store/domains/domains.ts'
import { operator, recordAction } from '../audit.ts'
import {
  algorithmsToRotate,
  listedRetiredMs,
  makeDkimKey,
  makeDomainKeys,
  maxRetiredKeys,
  openDkimKey,
  sealDkimKey,
} from '../secrets/dkim-secret.ts'
import { requireSealingKey } from '../secrets/secret-key.ts'

type Deps = { db: Db; clock: Clock; secretBox: SecretBox }

/** A key as operators see it. */
export interface ManagedKey {
  selector: string
  algorithm: DkimAlgorithm
  state: KeyInLifeRow['state']
  /** The name and value to publish. */
  name: string
  value: string
  /** The same as a line of a zone file, its text in strings that DNS can hold. */
  zoneLine: string
  /** ISO 8601: the end of the time that a retired key must stay published. Null for other keys. */
  publishedUntil: string | null
}

/** The domain's signing keys. The first call makes a key. Throws if a key does not open. */
export async function loadSigningKeys(deps: Deps, domain: string): Promise<DkimKey[]> {
  const { db, clock, secretBox } = deps
  let rows = await listDkimKeys(db, domain)
  if (rows.length === 0) {
    const made = await makeDkimKey({ domain, selector: 'ph1', algorithm: 'rsa-sha256' })
    await db.transaction(async (tx) => {
      await requireSealingKey(tx, secretBox)
      await insertDkimKey(tx, { ...sealDkimKey(secretBox, made), state: 'active' }, clock.now())
    })
    rows = await listDkimKeys(db, domain)
  }
  return rows
    .filter(({ state }) => state === 'active')
    .map((row) => {
      const { selector, algorithm } = row
      return { domain, selector, algorithm, privateKey: openDkimKey(secretBox, row) }
    })
}

/** All keys of the domain with their records, in the order in which they were made. */
export async function listManagedKeys(db: Queryable, domain: string): Promise<ManagedKey[]> {
  return (await listDkimKeys(db, domain)).map((row) => {
    const { selector, algorithm, state, retiredAt } = row
    const record = dkimRecordOf(row)
    const until = retiredAt && new Date(retiredAt.getTime() + listedRetiredMs)
    return {
      selector,
      algorithm,
      state,
      name: record.name,
      value: record.value,
      zoneLine: writeZoneLine(record),
      publishedUntil: until?.toISOString() ?? null,
    }
  })
}

/**
 * Adds a new key of each algorithm, unless one waits to be published already. New keys replace those of their algorithm once
 * DNS shows them, or at once with `publication: 'none'`. Returns how many were made.
 */
export async function rotateManagedKeys(
  { db, clock, secretBox }: Deps,
  domain: string,
  publication: 'dns' | 'none',
): Promise<number> {
  // Made before the lock is taken, as this takes a tenth of a second. Unneeded keys are dropped.
  const made = await makeDomainKeys(domain, algorithmsToRotate(await listDkimKeys(db, domain)))
  return await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    await lockProof(tx, domain)
    const algorithms = algorithmsToRotate(await listDkimKeys(tx, domain))
    const wanted = made.filter(({ algorithm }) => algorithms.includes(algorithm))
    const at = clock.now()
    for (const key of wanted)
      await insertDkimKey(tx, { ...sealDkimKey(secretBox, key), state: 'pending' }, at)
    const owner = { domain, domainId: null }
    if (publication === 'none') {
      const all = (await listDkimKeys(tx, domain)).map(({ selector }) => selector)
      await activateFoundKeys(tx, owner, all, at)
    }
    await trimRetiredKeys(tx, owner, maxRetiredKeys)
    if (wanted.length > 0)
      await recordAction(tx, null, operator, { action: 'domain.keys_rotated', subject: domain, at })
    return wanted.length
  })
}

interface CheckDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Pick<Resolver, 'resolve'>
}

/** Activates the waiting keys that DNS shows by now. Does nothing if none waits. */
export async function switchManagedKeys(
  { db, clock, log, resolver }: CheckDeps,
  domain: string,
): Promise<void> {
  const waiting = (await listDkimKeys(db, domain)).filter(({ state }) => state === 'pending')
  if (waiting.length === 0) return
  const records = waiting.map(dkimRecordOf)
  const seen = selectorsSeen(waiting, evaluate(records, await lookupRecords(resolver, records), 'nobody'))
  if (seen.length === 0) return
  const at = clock.now()
  const owner = { domain, domainId: null }
  if (await db.transaction((tx) => activateFoundKeys(tx, owner, seen, at)))
    log.info(
      { domain, selectors: seen },
      'new DKIM keys of the managed domain found in DNS; they sign from now on',
    )
}
