// Rotates a domain's DKIM keys: new ones wait until DNS shows them, then sign instead of the old.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { DomainId } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { DkimAlgorithm } from '../../mailauth/dkim-sign.ts'
import type { Db, Queryable } from '../../postgres/db.ts'
import { insertDomainKey, listDomainKeys, trimRetiredKeys } from '../../store/domains/dkim-keys.ts'
import { findDomain, lockDomain, touchDomain } from '../../store/domains/domains.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import { algorithmsToRotate, makeDomainKeys, maxRetiredKeys, sealDkimKey } from '../secrets/dkim-secret.ts'
import { requireSealingKey } from '../secrets/secret-key.ts'
import { type DomainView, type ViewDeps, viewOneDomain } from './domain-view.ts'

type Deps = ViewDeps & { db: Db; clock: Clock; secretBox: SecretBox }

/** Adds a new key of each algorithm, unless one waits to be published already. */
export async function rotateDkim(deps: Deps, caller: Caller, id: string): Promise<DomainView> {
  const { db, clock, secretBox } = deps
  const known = await findDomain(db, caller.organizationId, id)
  if (!known) throw gone()
  requireWholeOrganization(caller)
  // Checked before keys are made, which takes a tenth of a second, and again under the lock.
  const keys = await makeDomainKeys(known.name, await askAlgorithms(db, known.id))
  return await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    const row = await lockDomain(tx, caller.organizationId, id)
    if (!row) throw gone()
    const algorithms = await askAlgorithms(tx, row.id)
    const wanted = keys.filter(({ algorithm }) => algorithms.includes(algorithm))
    if (wanted.length === 0) return await viewOneDomain(tx, deps, row)
    const at = clock.now()
    for (const key of wanted) {
      const sealed = sealDkimKey(secretBox, key)
      await insertDomainKey(tx, { ...sealed, domainId: row.id, organizationId: row.organizationId }, at)
    }
    await trimRetiredKeys(tx, { domain: row.name, domainId: row.id }, maxRetiredKeys)
    await touchDomain(tx, row.id, at)
    const entry = { action: 'domain.keys_rotated', subject: row.name, at } as const
    await recordAction(tx, row.organizationId, actorOf(caller), entry)
    return await viewOneDomain(tx, deps, { ...row, updatedAt: at })
  })
}

async function askAlgorithms(db: Queryable, id: DomainId): Promise<DkimAlgorithm[]> {
  return algorithmsToRotate(await listDomainKeys(db, [id]))
}

function gone(): ServiceError {
  return new ServiceError('not_found', 'There is no such domain.')
}
