// One page of a list, from the rows that were read for it.

/** Returns the first `limit` rows, and the id after which the list continues; null unless more rows were read. */
export function pageOf<Row extends { id: string }>(
  rows: readonly Row[],
  limit: number,
): { page: Row[]; nextCursor: string | null } {
  const page = rows.slice(0, limit)
  return { page, nextCursor: rows.length > limit ? page.at(-1)!.id : null }
}
