// The condition and order for a range of an index, written so that the planner cannot read anything else.

/**
 * Selects the rows whose first columns are `values` and whose last column is from the first bound on and before the
 * second, in descending order. For `a = 1 and b >= 2 order by b` the planner may read all of b. It does so if statistics
 * say that most rows have a 1, or say nothing of the 2. Only this index can find rows compared as wholes. `any` tells the
 * planner how few rows match. It is not taken for a constant, which would drop `a` from the order.
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
