// The inboxes that are searched, whose messages alone are indexed; how far each is, and when it was searched last.
import type { InboxId, MessageId, OrganizationId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'

interface SearchedInbox {
  /** Every message that was there at its first search is indexed. */
  isComplete: boolean
  usedAt: Date
}

/** Null where it is not searched, or its index is being removed. */
export async function findSearched(db: Queryable, inboxId: InboxId): Promise<SearchedInbox | null> {
  const [row] = await db.query<SearchedInbox>(
    `select before_id is null as "isComplete", used_at as "usedAt" from searched_inbox
    where inbox_id = $1 and removed_to is null`,
    [inboxId],
  )
  return row ?? null
}

/** Whether any inbox is searched; or a message waits to be indexed, as one may of an inbox that is searched no more. */
export async function isSearchUsed(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ used: boolean }>(
    'select exists (select from searched_inbox) or exists (select from search_waiting) as used',
  )
  return row!.used
}

/** Has the inbox be indexed from here on, with a part for its newest messages, so many at most. See the function. */
export async function beginSearch(tx: Tx, inboxId: InboxId, newest: number, at: Date): Promise<void> {
  await tx.query('select begin_search($1, $2, $3)', [inboxId, newest, at])
}

export async function noteSearch(tx: Tx, inboxId: InboxId, at: Date): Promise<void> {
  await tx.query('update searched_inbox set used_at = greatest(used_at, $2) where inbox_id = $1', [
    inboxId,
    at,
  ])
}

/** An inbox that is not complete, of the next organization behind `behind`; null where all are complete. */
export async function findUnfinished(
  db: Queryable,
  behind: OrganizationId | null,
): Promise<{ inboxId: InboxId; organizationId: OrganizationId } | null> {
  const [row] = await db.query<{ inboxId: InboxId; organizationId: OrganizationId }>(
    `select inbox_id as "inboxId", organization_id as "organizationId" from (
      (select * from searched_inbox where before_id is not null and organization_id > $1
        order by organization_id, inbox_id limit 1)
      union all
      (select * from searched_inbox where before_id is not null order by organization_id, inbox_id limit 1)
    ) k order by organization_id > $1 desc limit 1`,
    [behind ?? '00000000-0000-0000-0000-000000000000'],
  )
  return row ?? null
}

/** The next older messages of the inbox that may not be indexed yet, newest first, as far as they belong to its oldest part. */
export async function findOlder(tx: Tx, inboxId: InboxId, limit: number): Promise<{ id: MessageId }[]> {
  return await tx.query<{ id: MessageId }>('select message_id as id from find_older($1, $2)', [
    inboxId,
    limit,
  ])
}

/** Of the inbox's older messages this one, and all that are newer, are indexed. */
export async function noteOlder(tx: Tx, inboxId: InboxId, id: MessageId): Promise<void> {
  await tx.query('update searched_inbox set before_id = $2 where inbox_id = $1', [inboxId, id])
}

/** Goes on to a part of so many messages where the oldest one is indexed; without any the inbox is complete. */
export async function extendSearch(tx: Tx, inboxId: InboxId, limit: number): Promise<void> {
  await tx.query('select extend_search($1, $2)', [inboxId, limit])
}

/** Removes words of an inbox that nobody has searched since `until`; returns of how many messages, null where there is none. */
export async function endSearch(tx: Tx, until: Date, limit: number): Promise<number | null> {
  const [row] = await tx.query<{ count: number | null }>('select end_search($1, $2) as count', [until, limit])
  return row!.count
}
