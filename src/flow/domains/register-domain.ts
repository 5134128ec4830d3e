// Registers a customer's domain: a claim with its own challenge and keys, to be proved later.
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { ServiceError } from '../../base/errors.ts'
import { type DomainId, newUuid } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { normalizeDomain } from '../../mail/domain-name.ts'
import type { Db, Queryable, Tx } from '../../postgres/db.ts'
import { lockOrganization } from '../../store/accounts/organizations.ts'
import { insertDomainKey } from '../../store/domains/dkim-keys.ts'
import {
  countDomains,
  type DomainRow,
  findClaim,
  insertDomain,
  isProvedByAnother,
  type Standing,
} from '../../store/domains/domains.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import { domainAlgorithms, makeDomainKeys, sealDkimKey, type UnsealedKey } from '../secrets/dkim-secret.ts'
import { requireSealingKey } from '../secrets/secret-key.ts'
import { type DomainView, type ViewDeps, viewOneDomain } from './domain-view.ts'

type Deps = ViewDeps & { db: Db; clock: Clock; secretBox: SecretBox; managedDomain: string }

/** Registers the name (trimmed), or returns the organization's claim on it. The limit is exact under parallel calls. */
export async function registerDomain(deps: Deps, caller: Caller, given: string): Promise<DomainView> {
  const { db, secretBox, managedDomain } = deps
  const normalized = normalizeDomain(given)
  if (normalized.status === 'refused')
    throw new ServiceError('invalid_request', `/domain ${normalized.expected}`)
  const { name } = normalized
  requireWholeOrganization(caller)
  const admit = async (queryable: Queryable, limit: number) => {
    const known = await findClaim(queryable, caller.organizationId, name)
    if (!known) await requireFree(queryable, caller, { name, limit, managedDomain })
    return known
  }
  // Checked before keys are made, which takes a tenth of a second, and again under the lock.
  const known = await admit(db, caller.limits.domains)
  if (known) return await viewOneDomain(db, deps, known)
  const keys = await makeDomainKeys(name, domainAlgorithms)
  return await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    const organization = await lockOrganization(tx, caller.organizationId)
    const row =
      (await admit(tx, organization!.limits.domains)) ?? (await insert(tx, deps, caller, name, keys))
    return await viewOneDomain(tx, deps, row)
  })
}

async function requireFree(
  db: Queryable,
  { organizationId }: Caller,
  { name, limit, managedDomain }: { name: string; limit: number; managedDomain: string },
): Promise<void> {
  const count = await countDomains(db, organizationId)
  if (count >= limit)
    throw new ServiceError(
      'limit_reached',
      `The organization has ${counted(count, 'domain')}. Its limit is ${limit}.`,
    )
  const isManaged = name === managedDomain || name.endsWith(`.${managedDomain}`)
  if (isManaged || (await isProvedByAnother(db, organizationId, name))) throw new ServiceError('domain_taken')
}

const untouched: Standing = { reasons: [], checkedAt: null, failures: 0, failingSince: null }

async function insert(
  tx: Tx,
  { clock, secretBox }: Deps,
  caller: Caller,
  name: string,
  keys: UnsealedKey[],
): Promise<DomainRow> {
  const at = clock.now()
  const { organizationId } = caller
  const row: DomainRow = {
    id: newUuid<DomainId>(),
    organizationId,
    name,
    challenge: `posthorn-challenge=${randomBytes(20).toString('hex')}`,
    status: 'pending',
    outbound: 'pending',
    inbound: 'pending',
    standing: { ownership: untouched, outbound: untouched, inbound: untouched },
    observations: {},
    checkedAt: null,
    nextCheckAt: null,
    verifiedAt: null,
    createdAt: at,
    updatedAt: at,
  }
  await insertDomain(tx, row)
  for (const key of keys)
    await insertDomainKey(tx, { ...sealDkimKey(secretBox, key), domainId: row.id, organizationId }, at)
  await recordAction(tx, organizationId, actorOf(caller), { action: 'domain.registered', subject: name, at })
  return row
}
