// Deletes an organization and all it had, in small steps. A repeated call resumes an interrupted deletion.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import type { OrganizationId } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Db } from '../../postgres/db.ts'
import {
  entombOrganization,
  findOrganization,
  updateOrganizationStatus,
} from '../../store/accounts/organizations.ts'
import { purgeDeletedWebhook } from '../../store/events/webhook-deliveries.ts'
import { buryWebhooks, listWebhooks } from '../../store/events/webhooks.ts'
import { entombInbox } from '../../store/mailbox/inboxes.ts'
import { deleteUnusedRaws } from '../../store/mailbox/raws.ts'
import {
  countHoldings,
  countSubmissions,
  findLivingInboxes,
  findRemovable,
  type Holdings,
  hasUnpurged,
  ownTables,
  receivedTables,
  removeKeys,
  removeOwnRows,
  removeReceived,
  removeSubmissions,
} from '../../store/mailbox/removal.ts'
import { type Actor, operator, recordAction } from '../audit.ts'
import { deleteBlobs } from '../delete-blobs.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { purgeDeleted } from '../mailbox/delete-inbox.ts'
import { ownOrganizationId } from '../own-organization.ts'

interface Deps {
  db: Db
  clock: Clock
  blobs: Blobs
}

const chunk = 500
/** How long to wait for messages on the wire to end, and how often to look. */
const [onWireMs, pollMs] = [30_000, 200]

/**
 * Deletes the organization and returns what it had at the start. Tombstones without a name keep its addresses taken, as no
 * other organization may read mail sent to them. `progress` receives a description of each step.
 */
export async function deleteOrganization(
  deps: Deps,
  given: string,
  progress: (words: string) => void,
  actor: Actor = operator,
): Promise<Holdings> {
  const { db, clock } = deps
  if (given === ownOrganizationId)
    throw new ServiceError(
      'invalid_request',
      'this is the organization of the service itself, which cannot be deleted',
    )
  const row = await db.transaction((tx) => updateOrganizationStatus(tx, given, 'deleting', clock.now()))
  if (!row) throw new ServiceError('not_found', `there is no organization ${given}`)
  await untilKnownEverywhere()
  const { id } = row
  const holdings = await countHoldings(db, id)
  progress('closing inboxes')
  await closeInboxes(deps, id)
  progress('removing sent mail')
  await removeSent(deps, id)
  progress('removing stored mail')
  await removeMail(deps, id)
  progress('removing endpoints, domains, suppressions, metrics and keys')
  await removeRest(deps, id, actor)
  return holdings
}

/** Counts what `deleteOrganization` would remove, for the question that confirms it. */
export async function previewDeletion(
  { db }: Pick<Deps, 'db'>,
  given: string,
): Promise<Holdings & { name: string }> {
  const row = await findOrganization(db, given)
  if (!row) throw new ServiceError('not_found', `there is no organization ${given}`)
  return { name: row.name, ...(await countHoldings(db, row.id)) }
}

async function closeInboxes({ db, clock }: Deps, id: OrganizationId): Promise<void> {
  for (;;) {
    const inboxes = await findLivingInboxes(db, id, chunk)
    if (inboxes.length === 0) return
    await db.transaction(async (tx) => {
      for (const inbox of inboxes) await entombInbox(tx, inbox, clock.now())
    })
  }
}

async function removeSent({ db, blobs }: Deps, id: OrganizationId): Promise<void> {
  const removeSome = async () => {
    const { removed, unused } = await db.transaction(async (tx) => {
      const ids = await findRemovable(tx, id, chunk)
      return { removed: ids.length, unused: await deleteUnusedRaws(tx, await removeSubmissions(tx, ids)) }
    })
    await deleteBlobs({ db, blobs }, unused)
    return removed
  }
  for (const untilMs = performance.now() + onWireMs; ; await sleep(pollMs)) {
    while ((await removeSome()) > 0);
    const submissions = await countSubmissions(db, id)
    if (submissions === 0) return
    if (performance.now() > untilMs)
      throw new ServiceError(
        'delivery_in_progress',
        `deliveries are still in progress (${submissions}): run the same command again in a few minutes to resume the deletion`,
      )
  }
}

async function removeMail(deps: Deps, id: OrganizationId): Promise<void> {
  const { db, blobs } = deps
  for (const table of receivedTables) while ((await removeSomeReceived(deps, table, id)) > 0);
  // A node's jobs may be purging the same inbox. Wait until they finish.
  for (; await hasUnpurged(db, id); await sleep(pollMs)) while (await purgeDeleted({ db, blobs }, chunk));
}

async function removeSomeReceived(
  { db, blobs }: Deps,
  table: (typeof receivedTables)[number],
  id: OrganizationId,
): Promise<number> {
  const { removed, unused } = await db.transaction(async (tx) => {
    const rawIds = await removeReceived(tx, table, id, chunk)
    return { removed: rawIds.length, unused: await deleteUnusedRaws(tx, rawIds) }
  })
  await deleteBlobs({ db, blobs }, unused)
  return removed
}

async function removeWebhooks({ db, clock }: Deps, id: OrganizationId): Promise<void> {
  for (;;) {
    const webhooks = await listWebhooks(db, id, null, chunk)
    if (webhooks.length === 0) break
    const ids = webhooks.map((webhook) => webhook.id)
    await db.transaction((tx) => buryWebhooks(tx, ids, clock.now()))
  }
  while ((await db.transaction((tx) => purgeDeletedWebhook(tx, chunk))) > 0);
}

async function removeRest(deps: Deps, id: OrganizationId, actor: Actor): Promise<void> {
  const { db, clock } = deps
  await removeWebhooks(deps, id)
  for (const table of ownTables)
    while ((await db.transaction((tx) => removeOwnRows(tx, table, id, chunk))) > 0);
  await db.transaction(async (tx) => {
    await removeKeys(tx, id)
    await entombOrganization(tx, id, clock.now())
    // The entry names the id only, as the organization's name is deleted too.
    await recordAction(tx, null, actor, { action: 'organization.deleted', subject: id, at: clock.now() })
  })
}
