// Which kinds of work are due: one statement answers for all kinds.
import type { Queryable } from '../postgres/db.ts'

/**
 * A condition in SQL that holds whenever work of one kind can be claimed. It may also hold without such work, because a
 * claim checks again, but it must be cheap: an index finds its first row. It may use `asked.at`, the time, and
 * `asked.managed_domain`.
 */
export type DueCondition = string

/** Returns the conditions that hold. */
export async function findDue(
  db: Queryable,
  conditions: readonly DueCondition[],
  { at, managedDomain }: { at: Date; managedDomain: string },
): Promise<DueCondition[]> {
  const [row] = await db.query<{ holds: boolean[] }>(
    `select array[${conditions.join(',\n')}] as holds
    from (select $1::timestamptz as at, $2::text as managed_domain) asked`,
    [at, managedDomain],
  )
  return conditions.filter((_, index) => row!.holds[index])
}

/** With this many waiting rows, some count as due, because reading them all would cost too much. */
const mostWaiting = 200

/**
 * Holds if the time of any row has come, for an index that does not begin with that time. `from` is a table and a condition
 * that the index answers.
 */
export function anyDue(time: string, from: string): DueCondition {
  return `(select count(*) = ${mostWaiting} or count(*) filter (where due_at <= asked.at) > 0
    from (select ${time} as due_at from ${from} limit ${mostWaiting}) waiting)`
}
