// The searched inboxes: only their messages are indexed. Each row has the progress, and the time of the last search.
import type { InboxId, MessageId, OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'
import { hasUnread } from '../events/outbox.ts'

export interface SearchedRow {
  /** Whether every message that existed at its first search is indexed. */
  isComplete: boolean
  usedAt: Date
}

/** Returns null if the inbox is not searched, or its index is being removed. */
export async function findSearched(db: Queryable, inboxId: InboxId): Promise<SearchedRow | null> {
  const [row] = await db.query<SearchedRow>(
    `select before_id is null as "isComplete", used_at as "usedAt" from searched_inbox
    where inbox_id = $1 and removed_to is null`,
    [inboxId],
  )
  return row ?? null
}

/** Holds if an inbox is searched and a message may not be indexed yet, or if one waits to be indexed. */
export const indexingDue: DueCondition = `(exists (select from search_waiting)
  or exists (select from searched_inbox) and ${hasUnread('search')}
  or exists (select from searched_inbox where before_id is not null))`

/**
 * Whether any inbox is searched, or any message waits to be indexed. It may be a message of an inbox no longer searched.
 */
export async function isSearchUsed(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ used: boolean }>(
    'select exists (select from searched_inbox) or exists (select from search_waiting) as used',
  )
  return row!.used
}

/** Starts to index the inbox, with a part for up to `newest` of its newest messages. See `begin_search`. */
export async function beginSearch(tx: Tx, inboxId: InboxId, newest: number, at: Date): Promise<void> {
  await tx.query('select begin_search($1, $2, $3)', [inboxId, newest, at])
}

export async function noteSearch(tx: Tx, inboxId: InboxId, at: Date): Promise<void> {
  await tx.query('update searched_inbox set used_at = greatest(used_at, $2) where inbox_id = $1', [
    inboxId,
    at,
  ])
}

/** Finds an inbox that is not complete, of the next organization after `last`; null if all are complete. */
export async function findUnfinished(
  db: Queryable,
  last: OrganizationId | null,
): Promise<{ inboxId: InboxId; organizationId: OrganizationId } | null> {
  const [row] = await db.query<{ inboxId: InboxId; organizationId: OrganizationId }>(
    `select inbox_id as "inboxId", organization_id as "organizationId" from (
      (select * from searched_inbox where before_id is not null and organization_id > $1
        order by organization_id, inbox_id limit 1)
      union all
      (select * from searched_inbox where before_id is not null order by organization_id, inbox_id limit 1)
    ) k order by organization_id > $1 desc limit 1`,
    [last ?? '00000000-0000-0000-0000-000000000000'],
  )
  return row ?? null
}

/** Returns the next older messages of the inbox's oldest part that may not be indexed yet, newest first. */
export async function findOlder(tx: Tx, inboxId: InboxId, limit: number): Promise<{ id: MessageId }[]> {
  return await tx.query<{ id: MessageId }>('select message_id as id from find_older($1, $2)', [
    inboxId,
    limit,
  ])
}

/** Notes that this message, and all newer ones of the inbox, are indexed. */
export async function noteOlder(tx: Tx, inboxId: InboxId, id: MessageId): Promise<void> {
  await tx.query('update searched_inbox set before_id = $2 where inbox_id = $1', [inboxId, id])
}

/**
 * Runs once the oldest part is indexed: adds a part for up to `limit` older messages. If there are none, the inbox is
 * complete.
 */
export async function extendSearch(tx: Tx, inboxId: InboxId, limit: number): Promise<void> {
  await tx.query('select extend_search($1, $2)', [inboxId, limit])
}

/**
 * Removes the words of up to `limit` messages of an inbox not searched since `until`. Returns how many; null if no such
 * inbox.
 */
export async function endSearch(tx: Tx, until: Date, limit: number): Promise<number | null> {
  const [row] = await tx.query<{ count: number | null }>('select end_search($1, $2) as count', [until, limit])
  return row!.count
}
