// Opens an inbox: a managed starter address, taken out of the organization's allowance for life.
import { randomInt } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { ServiceError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { type Db, DbFault, type Tx } from '../store/db.ts'
import {
  countInboxes,
  findAddressHolder,
  findInboxByIdempotencyKey,
  type InboxRow,
  insertInbox,
} from '../store/inboxes.ts'
import { lockOrganization, takeManagedAllowance } from '../store/organizations.ts'
import { type Caller, requireWholeOrganization } from './caller.ts'
import type { Idempotency } from './idempotency.ts'
import { isReserved } from './reserved-names.ts'

export interface InboxInput {
  localPart?: string
  displayName?: string
  domainId?: string
}

type Deps = { db: Db; clock: Clock; managedDomain: string }

/**
 * Opens the inbox, or answers the one that the idempotency key opened before. The allowance, the limits and the
 * address are exact under parallel calls: all is decided under the organization's lock.
 */
export async function openInbox(
  deps: Deps,
  caller: Caller,
  input: InboxInput,
  idempotency: Idempotency | null,
): Promise<InboxRow> {
  try {
    return await deps.db.transaction(async (tx) => {
      const organization = await lockOrganization(tx, caller.organizationId)
      const earlier =
        idempotency && (await findInboxByIdempotencyKey(tx, caller.organizationId, idempotency.key))
      if (earlier) return replay(earlier, idempotency)
      if (input.domainId !== undefined) throw new ServiceError('not_found', 'there is no such domain')
      requireWholeOrganization(caller)
      if (input.localPart !== undefined && isReserved(input.localPart, 'managed'))
        throw new ServiceError('reserved_local_part')
      const { all } = await countInboxes(tx, caller.organizationId, null)
      if (all >= organization!.limits.inboxes)
        throw new ServiceError('limit_reached', `the organization has its ${all} inboxes`)
      if (!(await takeManagedAllowance(tx, caller.organizationId)))
        throw new ServiceError('managed_allowance_exhausted')
      return await insert(tx, deps, caller, input, idempotency)
    })
  } catch (error) {
    if (error instanceof DbFault && error.constraint === 'inbox_address')
      throw new ServiceError('address_taken')
    throw error
  }
}

function replay(
  { requestHash, ...inbox }: InboxRow & { requestHash: Buffer },
  idempotency: Idempotency,
): InboxRow {
  if (inbox.status === 'deleted' || !requestHash.equals(idempotency.requestHash))
    throw new ServiceError('idempotency_key_reused')
  return inbox
}

async function insert(
  tx: Tx,
  deps: Deps,
  caller: Caller,
  input: InboxInput,
  idempotency: Idempotency | null,
): Promise<InboxRow> {
  const localPart = input.localPart ?? (await freeLocalPart(tx, deps.managedDomain))
  const holder = await findAddressHolder(tx, deps.managedDomain, localPart)
  if (holder && (holder.status === 'active' || holder.organizationId !== caller.organizationId)) {
    throw new ServiceError('address_taken')
  }
  const at = deps.clock.now()
  const inbox: InboxRow = {
    id: newId('inbox', at.getTime()),
    organizationId: caller.organizationId,
    localPart,
    domain: deps.managedDomain,
    domainId: null,
    displayName: input.displayName ?? localPart,
    status: 'active',
    createdAt: at,
    updatedAt: at,
    deletedAt: null,
  }
  await insertInbox(tx, inbox, idempotency)
  return inbox
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

async function freeLocalPart(tx: Tx, domain: string): Promise<string> {
  for (let tries = 0; tries < 10; tries++) {
    const words = [
      qualities[randomInt(qualities.length)],
      bearers[randomInt(bearers.length)],
      randomInt(1_000, 1_000_000),
    ]
    const localPart = words.join('-')
    if (!(await findAddressHolder(tx, domain, localPart))) return localPart
  }
  throw new Error('no free readable local part in ten tries')
}
