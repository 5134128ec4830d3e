// Ends waiting deliveries that expired, were cancelled, or go to a domain that takes no mail. Pauses and flushes queues.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { firstUuidAt, type OrganizationId } from '../../base/ids.ts'
import { parseDomain } from '../../mail/address.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { findOrganization } from '../../store/accounts/organizations.ts'
import {
  type DeliveryKey,
  findWaitingOfOrganization,
  findWaitingOfRoute,
} from '../../store/sending/deliveries.ts'
import { type DeliveryEnd, endDeliveries } from '../../store/sending/delivery-ends.ts'
import { findExpired } from '../../store/sending/expired-deliveries.ts'
import {
  flushRoute,
  listQueues,
  pauseRoutes,
  type QueueRow,
  resumeRoutes,
} from '../../store/sending/routes.ts'
import { type Actor, type AuditedAction, operator, recordAction } from '../audit.ts'
import { readRoute, specialRoutes, withWishes } from '../route-policy.ts'
import type { Refusal } from './next-hop.ts'

type Deps = { db: Db; clock: Clock }

const chunk = 500
const cancelled = { failureCode: 'cancelled', eventType: 'cancelled', classification: null } as const

/** Fails deliveries past their lifetime, whatever their route's state. Returns how many. */
export async function expireDeliveries({ db, clock }: Deps): Promise<number> {
  const at = clock.now()
  const expired = await findExpired(db, at, chunk)
  const { true: withoutTls = [], false: others = [] } = Object.groupBy(
    expired,
    ({ lacksTls }) => `${lacksTls}`,
  )
  const end = { eventType: 'failed', classification: 'expired' } as const
  const ended = await endDeliveries(db.writer, others, { ...end, failureCode: 'soft_bounce_expired' }, at)
  return ended + (await endDeliveries(db.writer, withoutTls, { ...end, failureCode: 'tls_required' }, at))
}

/** Fails all mail that waits for a destination that permanently takes no mail. */
export async function failRoute(
  { db, clock }: Deps,
  route: string,
  { failureCode, enhancedStatus, reason }: Refusal,
): Promise<void> {
  const response = `${enhancedStatus} ${reason}`
  const classification = failureCode === 'tls_required' ? 'tls' : 'dns'
  const end = { failureCode, eventType: 'failed', classification, response, enhancedStatus } as const
  await endRoute({ db, clock }, route, end)
}

/** Cancels all waiting mail of the queue. Returns how many deliveries ended. */
export async function cancelQueue(deps: Deps, route: string, actor = operator): Promise<number> {
  const { waiting } = await requireQueue(deps, route)
  await recordCancelling(deps, null, actor, { subject: route, detail: { waiting } })
  return await endRoute(deps, route, cancelled)
}

/**
 * Cancels all waiting mail of the organization in chunks, whatever the organization's status. Returns how many deliveries
 * ended. Mail accepted after the call began is not cancelled.
 */
export async function cancelOrganization({ db, clock }: Deps, id: string, actor = operator): Promise<number> {
  const organization = await findOrganization(db, id)
  if (!organization) throw new ServiceError('not_found', `there is no organization ${id}`)
  await recordCancelling({ db, clock }, organization.id, actor, { subject: organization.name })
  const before = firstUuidAt(clock.nowMs() + 1)
  const find = () => findWaitingOfOrganization(db, organization.id, before, chunk)
  return await endAll({ db, clock }, find, cancelled)
}

/** Writes the audit entry before the first chunk is cancelled, because a crash may end the cancelling between two chunks. */
async function recordCancelling(
  { db, clock }: Deps,
  organizationId: OrganizationId | null,
  actor: Actor,
  entry: Pick<AuditedAction, 'subject' | 'detail'>,
): Promise<void> {
  const at = clock.now()
  await db.transaction((tx) =>
    recordAction(tx, organizationId, actor, { ...entry, action: 'queue.cancelled', at }),
  )
}

async function endRoute(deps: Deps, route: string, end: DeliveryEnd): Promise<number> {
  return await endAll(deps, () => findWaitingOfRoute(deps.db, route, chunk), end)
}

/** Ends chunks, each in its own commit, until `find` returns nothing. */
async function endAll(
  { db, clock }: Deps,
  find: () => Promise<DeliveryKey[]>,
  end: DeliveryEnd,
): Promise<number> {
  let count = 0
  for (;;) {
    const waiting = await find()
    if (waiting.length === 0) return count
    count += await endDeliveries(db.writer, waiting, end, clock.now())
  }
}

/**
 * A paused queue starts no new transactions. Running ones finish. A queue may be paused before its first mail. A pause also
 * holds for mail with a wish for TLS to the same next hop, as a sender must not pass it by such a wish.
 */
export async function pauseQueue(
  { db, clock }: Deps,
  route: string,
  state: 'paused' | 'running',
  actor = operator,
): Promise<void> {
  const at = clock.now()
  await db.transaction(async (tx) => {
    if (state === 'paused') await pause(tx, route, at)
    else if (!(await resumeRoutes(tx, pausedWith(route)))) throw noQueue(route)
    const action = state === 'paused' ? 'queue.paused' : 'queue.resumed'
    await recordAction(tx, null, actor, { action, subject: route, at })
  })
}

async function pause(tx: Tx, route: string, at: Date): Promise<void> {
  const special = Object.values<string>(specialRoutes)
  const { hop } = readRoute(route)
  if (parseDomain(hop) !== hop && !special.includes(hop))
    throw new ServiceError(
      'not_found',
      `there is no queue "${route}": name a domain, or ${special.join(', ')}`,
    )
  await pauseRoutes(tx, pausedWith(route), at)
}

/** A queue whose key has a wish is paused alone. */
function pausedWith(route: string): string[] {
  return readRoute(route).wish === null ? withWishes(route) : [route]
}

/** Makes all waiting mail due at once, whatever its back-off or that of its queue. Returns how many deliveries it released. */
export async function flushQueue({ db, clock }: Deps, route: string, actor = operator): Promise<number> {
  const at = clock.now()
  const moved = await db.transaction(async (tx) => {
    const count = await flushRoute(tx, { key: route, pool: readRoute(route).pool }, at)
    if (count === null) return null
    const entry = { action: 'queue.flushed', subject: route, detail: { moved: count }, at } as const
    await recordAction(tx, null, actor, entry)
    return count
  })
  if (moved === null) throw noQueue(route)
  return moved
}

async function requireQueue({ db }: Deps, route: string): Promise<QueueRow> {
  const [queue] = await listQueues(db, route)
  if (!queue) throw noQueue(route)
  return queue
}

function noQueue(route: string): ServiceError {
  return new ServiceError('not_found', `there is no queue "${route}"; "posthorn queue list" lists all queues`)
}
