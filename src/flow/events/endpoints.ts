// Manages customers' webhook endpoints: create, change, rotate the secret, test, replay and delete. Shows a secret once.
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { ServiceError } from '../../base/errors.ts'
import { newId, newUuid } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db, Queryable, Tx } from '../../postgres/db.ts'
import { lockOrganization } from '../../store/accounts/organizations.ts'
import { announce } from '../../store/events/outbox.ts'
import { replayDelivery, type WebhookDeliveryRow } from '../../store/events/webhook-deliveries.ts'
import {
  buryWebhooks,
  countWebhooks,
  findWebhook,
  insertWebhook,
  isBeingCalled,
  lockWebhook,
  replaceSecret,
  updateWebhook,
  type WebhookRow,
} from '../../store/events/webhooks.ts'
import type { AddressGuard } from '../../webhook/address-guard.ts'
import { newSigningSecret } from '../../webhook/sign.ts'
import { type AuditedAction, actorOf, recordAction } from '../audit.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import { type Maker, requireStillChanging } from '../require-still-changing.ts'
import { requireSealingKey } from '../secrets/secret-key.ts'
import { sealSigningSecret } from '../secrets/signing-secret.ts'

type Deps = { db: Db; clock: Clock }
type SecretDeps = Deps & { secretBox: SecretBox }
type GuardDeps = { guard: Pick<AddressGuard, 'refusalOf'> }

/** How long the previous secret still signs. */
const overlapMs = 24 * 3_600_000

export interface WebhookInput {
  url: string
  eventTypes?: string[] | null
  description?: string | null
}

/**
 * Creates an endpoint. If an API key creates it, the person who made the key is recorded as its maker. The limit is exact
 * under parallel calls, as endpoints are counted under the organization's lock.
 */
export async function openWebhook(
  { db, clock, secretBox, guard }: SecretDeps & GuardDeps,
  caller: Caller,
  input: WebhookInput,
): Promise<{ webhook: WebhookRow; secret: string }> {
  requireUrl(guard, input.url)
  requireWholeOrganization(caller)
  const at = clock.now()
  const webhook: WebhookRow = {
    id: newId('webhook', at.getTime()),
    organizationId: caller.organizationId,
    url: input.url,
    eventTypes: input.eventTypes ?? null,
    description: input.description ?? null,
    status: 'active',
    createdAt: at,
    updatedAt: at,
  }
  const secret = newSigningSecret()
  const maker = makerOf(caller)
  await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    const organization = await lockOrganization(tx, caller.organizationId)
    await requireStillChanging(tx, maker)
    const count = await countWebhooks(tx, caller.organizationId)
    const { webhookEndpoints } = organization!.limits
    if (count >= webhookEndpoints)
      throw new ServiceError(
        'limit_reached',
        `The organization has ${counted(count, 'webhook endpoint')}. Its limit is ${webhookEndpoints}.`,
      )
    await insertWebhook(
      tx,
      { ...webhook, madeBy: maker.personId },
      sealSigningSecret(secretBox, webhook.id, secret),
    )
    await record(tx, caller, webhook, { action: 'webhook.created', at })
  })
  return { webhook, secret }
}

function makerOf({ id: keyId, sessionId, personId, madeBy }: Caller): Maker {
  return { keyId, sessionId, personId: personId ?? madeBy }
}

function requireUrl(guard: GuardDeps['guard'], url: string): void {
  const refusal = guard.refusalOf(url)
  if (refusal) throw new ServiceError('invalid_request', `/url ${refusal}`)
}

export async function readWebhook(db: Queryable, caller: Caller, id: string): Promise<WebhookRow> {
  const webhook = await findWebhook(db, caller.organizationId, id)
  if (!webhook) throw new ServiceError('not_found', 'There is no such webhook.')
  requireWholeOrganization(caller)
  return webhook
}

export interface WebhookChange extends Partial<WebhookInput> {
  status?: WebhookRow['status']
}

export async function changeWebhook(
  { db, clock, guard }: Deps & GuardDeps,
  caller: Caller,
  id: string,
  change: WebhookChange,
): Promise<WebhookRow> {
  if (change.url !== undefined) requireUrl(guard, change.url)
  return await db.transaction(async (tx) => {
    const webhook = await lockOwn(tx, caller, id)
    const at = clock.now()
    const changed = { ...webhook, ...change, updatedAt: at }
    await updateWebhook(tx, changed)
    const detail = differences(webhook, changed)
    if (Object.keys(detail).length > 0)
      await record(tx, caller, webhook, { action: 'webhook.changed', detail, at })
    return changed
  })
}

/** The fields that differ, each as `from` and `to`. */
function differences(before: WebhookRow, after: WebhookRow): Record<string, { from: unknown; to: unknown }> {
  const fields = ['url', 'eventTypes', 'description', 'status'] as const
  const pairs = fields.map((name) => [name, { from: before[name], to: after[name] }] as const)
  return Object.fromEntries(pairs.filter(([, { from, to }]) => !isDeepStrictEqual(from, to)))
}

/** Gives the endpoint a new secret. Calls carry two signatures while the old one is valid. */
export async function rotateSecret(
  { db, clock, secretBox }: SecretDeps,
  caller: Caller,
  id: string,
): Promise<{ webhook: WebhookRow; secret: string }> {
  return await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    const webhook = await lockOwn(tx, caller, id)
    const at = clock.now()
    const secret = newSigningSecret()
    const sealed = sealSigningSecret(secretBox, webhook.id, secret)
    await replaceSecret(tx, webhook.id, sealed, { previousUntil: new Date(at.getTime() + overlapMs), at })
    await record(tx, caller, webhook, { action: 'webhook.secret_rotated', at })
    return { webhook: { ...webhook, updatedAt: at }, secret }
  })
}

/** Sends a `webhook.test` to this endpoint only. */
export async function testWebhook({ db, clock }: Deps, caller: Caller, id: string): Promise<WebhookRow> {
  return await db.transaction(async (tx) => {
    const webhook = await lockOwn(tx, caller, id)
    const items = [{ id: newUuid(), type: 'webhook.test' as const, webhook: webhook.id }]
    await announce(tx, { organizationId: caller.organizationId, at: clock.now(), items })
    return webhook
  })
}

/** Makes a delivery due again, whatever its outcome. Its event keeps its id. */
export async function replayCall(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  deliveryId: string,
): Promise<WebhookDeliveryRow> {
  return await db.transaction(async (tx) => {
    const webhook = await lockOwn(tx, caller, id)
    const at = clock.now()
    const delivery = await replayDelivery(tx, webhook.id, deliveryId, at)
    if (!delivery) throw new ServiceError('not_found', 'There is no such webhook delivery.')
    const detail = { deliveryId: delivery.id }
    await record(tx, caller, webhook, { action: 'webhook.call_replayed', detail, at })
    return delivery
  })
}

/**
 * Deletes the endpoint. No call begins after this, and its pending deliveries are gone. Throws `delivery_in_progress` (409)
 * while the endpoint is being called. A disabled endpoint is never being called.
 */
export async function deleteWebhook({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  await db.transaction(async (tx) => {
    const webhook = await lockOwn(tx, caller, id)
    const at = clock.now()
    if (await isBeingCalled(tx, webhook.id, at))
      throw new ServiceError(
        'delivery_in_progress',
        'A call to this endpoint is in progress. Try again in a moment, or disable the endpoint first.',
      )
    await buryWebhooks(tx, [webhook.id], at)
    await record(tx, caller, webhook, { action: 'webhook.deleted', at })
  })
}

async function record(
  tx: Tx,
  caller: Caller,
  { id, url }: WebhookRow,
  { detail = {}, ...action }: Omit<AuditedAction, 'subject'>,
): Promise<void> {
  const entry = { ...action, subject: id, detail: { url, ...detail } }
  await recordAction(tx, caller.organizationId, actorOf(caller), entry)
}

async function lockOwn(tx: Tx, caller: Caller, id: string): Promise<WebhookRow> {
  // Locks the person before the endpoint, in the same order as a password reset, so that the two never deadlock.
  await requireStillChanging(tx, makerOf(caller))
  const webhook = await lockWebhook(tx, caller.organizationId, id)
  if (!webhook) throw new ServiceError('not_found', 'There is no such webhook.')
  requireWholeOrganization(caller)
  return webhook
}
