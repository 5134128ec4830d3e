// Queries used for many tables: counting rows, and listing an organization's rows, newest first.
import type { OrganizationId } from '../base/ids.ts'
import type { Queryable } from '../postgres/db.ts'

/** A UUID after all others. A list without a position begins before it. */
export const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Counts the rows `from` a table under a condition. */
export async function countRows(db: Queryable, from: string, values: readonly unknown[]): Promise<number> {
  const [row] = await db.query<{ count: number }>(`select count(*) as count from ${from}`, values)
  return row!.count
}

/** Lists up to `limit` rows of the organization, `$1` in `from`, newest first, after `beforeId`; ids are UUIDs. */
export function newestFirst<Row>(columns: string, from: string, id = 'id') {
  const text = `select ${columns} from ${from} and ${id} < coalesce($2, '${lastUuid}'::uuid)
    order by ${id} desc limit $3`
  return (
    db: Queryable,
    organizationId: OrganizationId,
    beforeId: string | null,
    limit: number,
  ): Promise<Row[]> => db.query<Row>(text, [organizationId, beforeId, limit])
}
