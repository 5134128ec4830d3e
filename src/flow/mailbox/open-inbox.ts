// Opens an inbox: on a customer's proved domain, or as a managed starter address from the lifetime allowance.
import { randomInt } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { ServiceError } from '../../base/errors.ts'
import { type DomainId, newId } from '../../base/ids.ts'
import { isReserved } from '../../mail/reserved-names.ts'
import { type Db, DbFault, type Tx } from '../../postgres/db.ts'
import {
  lockOrganization,
  type OrganizationRow,
  takeManagedAllowance,
} from '../../store/accounts/organizations.ts'
import { keepDomain } from '../../store/domains/domain-use.ts'
import {
  countInboxes,
  findAddressHolder,
  findInboxByIdempotencyKey,
  type InboxRow,
  insertInbox,
  isOpenOnDomain,
} from '../../store/mailbox/inboxes.ts'
import { actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import type { Idempotency } from '../idempotency.ts'
import { requireDisplayName } from '../require-name.ts'

export interface InboxInput {
  localPart?: string
  displayName?: string
  domainId?: string
}

type Deps = { db: Db; clock: Clock; managedDomain: string }

/**
 * Opens the inbox, or returns the one that the idempotency key opened before. Decides under the organization's lock, so
 * allowance, limits and address are exact under parallel calls.
 */
export async function openInbox(
  deps: Deps,
  caller: Caller,
  input: InboxInput,
  idempotency: Idempotency | null,
): Promise<InboxRow> {
  if (input.localPart !== undefined && isReserved(input.localPart, kindOf(input)))
    throw new ServiceError('reserved_local_part')
  requireWholeOrganization(caller)
  try {
    return await deps.db.transaction(async (tx) => {
      const organization = await lockOrganization(tx, caller.organizationId)
      const earlier =
        idempotency && (await findInboxByIdempotencyKey(tx, caller.organizationId, idempotency.key))
      if (earlier) return replay(earlier, idempotency)
      const domain = await findDomainOf(tx, deps, caller, input)
      await requireRoom(tx, organization!, domain)
      return await insert(tx, deps, caller, { input, domain, idempotency })
    })
  } catch (error) {
    if (error instanceof DbFault && error.constraint === 'inbox_address')
      throw new ServiceError('address_taken')
    throw error
  }
}

/** The domain of the new address: the managed one (`id` null) or a customer's. */
interface AddressDomain {
  id: DomainId | null
  name: string
  isProved: boolean
}

function kindOf({ domainId }: InboxInput): 'managed' | 'customer' {
  return domainId === undefined ? 'managed' : 'customer'
}

async function findDomainOf(
  tx: Tx,
  deps: Deps,
  caller: Caller,
  { domainId }: InboxInput,
): Promise<AddressDomain> {
  if (domainId === undefined) return { id: null, name: deps.managedDomain, isProved: true }
  const domain = await keepDomain(tx, caller.organizationId, domainId)
  if (!domain) throw new ServiceError('not_found', 'There is no such domain.')
  return domain
}

/** Refuses an inbox beyond the limits or the allowance, or on a domain that the organization has not proved yet. */
async function requireRoom(tx: Tx, { id, limits }: OrganizationRow, domain: AddressDomain): Promise<void> {
  const { all, onDomain } = await countInboxes(tx, id, domain.id)
  if (all >= limits.inboxes)
    throw new ServiceError(
      'limit_reached',
      `The organization has ${counted(all, 'inbox', 'inboxes')}. Its limit is ${limits.inboxes}.`,
    )
  if (domain.id === null) {
    if (!(await takeManagedAllowance(tx, id))) throw new ServiceError('managed_allowance_exhausted')
    return
  }
  if (onDomain >= limits.inboxesPerDomain)
    throw new ServiceError(
      'limit_reached',
      `The domain has ${counted(onDomain, 'inbox', 'inboxes')}. Its limit is ${limits.inboxesPerDomain}.`,
    )
  if (!domain.isProved) throw new ServiceError('domain_not_verified')
}

function replay(
  { requestHash, ...inbox }: InboxRow & { requestHash: Buffer },
  idempotency: Idempotency,
): InboxRow {
  if (inbox.status === 'deleted' || !requestHash.equals(idempotency.requestHash))
    throw new ServiceError('idempotency_key_reused')
  return inbox
}

interface NewInbox {
  input: InboxInput
  domain: AddressDomain
  idempotency: Idempotency | null
}

async function insert(
  tx: Tx,
  deps: Deps,
  caller: Caller,
  { input, domain, idempotency }: NewInbox,
): Promise<InboxRow> {
  const localPart = input.localPart ?? (await freeLocalPart(tx, domain, caller))
  if (await isTaken(tx, domain, localPart, caller)) throw new ServiceError('address_taken')
  const at = deps.clock.now()
  const inbox: InboxRow = {
    id: newId('inbox', at.getTime()),
    organizationId: caller.organizationId,
    localPart,
    domain: domain.name,
    domainId: domain.id,
    displayName: input.displayName === undefined ? localPart : requireDisplayName(input.displayName),
    status: 'active',
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  }
  await insertInbox(tx, inbox, idempotency)
  const subject = `${localPart}@${domain.name}`
  await recordAction(tx, caller.organizationId, actorOf(caller), { action: 'inbox.created', subject, at })
  return inbox
}

/**
 * An address on the managed domain never moves to another organization, which would read mail sent to the first. A
 * customer's domain belongs to its owner: an organization that has proved it now may open any address not open under this
 * claim.
 */
async function isTaken(
  tx: Tx,
  domain: AddressDomain,
  localPart: string,
  { organizationId }: Caller,
): Promise<boolean> {
  if (domain.id !== null) return await isOpenOnDomain(tx, domain.id, `${localPart}@${domain.name}`)
  const holder = await findAddressHolder(tx, domain.name, localPart)
  return holder !== null && (holder.status === 'active' || holder.organizationId !== organizationId)
}

const qualities = (
  'amber brave brisk calm clear coral crisp early eager fair fern fleet gentle golden happy hazel keen kind lively ' +
  'lucky lunar maple mellow merry misty noble olive opal plain proud quick quiet ready rosy royal sandy silver sunny ' +
  'swift tidy velvet vivid warm wise young zesty'
).split(' ')
const bearers = (
  'badger beacon bison breeze brook canyon cedar comet crane dove eagle ember falcon finch forest fox garden grove ' +
  'harbor hare heron island lake lark lynx meadow moon moose otter owl pebble pine puffin raven reef river robin seal ' +
  'sparrow star stone swan thistle tiger valley willow wren'
).split(' ')

async function freeLocalPart(tx: Tx, domain: AddressDomain, caller: Caller): Promise<string> {
  for (let tries = 0; tries < 10; tries++) {
    const words = [
      qualities[randomInt(qualities.length)],
      bearers[randomInt(bearers.length)],
      randomInt(1_000, 1_000_000),
    ]
    const localPart = words.join('-')
    if (!(await isTaken(tx, domain, localPart, caller))) return localPart
  }
  throw new Error('no free readable local part in ten tries')
}
