// A stretch of an index, written so that no plan reads anything else.

/**
 * Where and in which order the rows stand whose first columns are `values` and whose last is from the first bound on and
 * before the second, the last row first. Of `a = 1 and b >= 2 order by b` it would be planned, where statistics say that
 * most rows have a 1, or where they say nothing of the 2, to go through all of b. Rows compared as wholes can be found by
 * this index alone; `any` says how few they are, and is not taken for a constant, which would take `a` out of the order.
 */
export function stretchOf(
  columns: readonly [first: string, ...others: string[]],
  values: readonly [first: string, ...others: string[]],
  [from, before]: readonly [from: string, before: string],
): string {
  const [row, start] = [columns.join(', '), values.join(', ')]
  return `${columns[0]} = any(array[${values[0]}]) and (${row}) >= (${start}, ${from}) and (${row}) < (${start}, ${before})
    order by ${columns.map((column) => `${column} desc`).join(', ')}`
}
