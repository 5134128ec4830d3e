// The condition and order for a range of an index, written so that the planner cannot read anything else.

/**
 * Selects the rows whose first columns are `values` and whose last column is from the first bound on and before the second,
 * in descending order. For `a = 1 and b >= 2 order by b` the planner may read an index of `b` alone. It does so if
 * statistics say that `a` is 1 in most rows, or say nothing about `b`. Only an index of both columns answers the row
 * comparison `(a, b) >= (1, 2)`. `a = any(array[1])` lets the planner estimate how few rows match. Unlike `a = 1`, it keeps
 * `a` in the order: the planner drops a column that it takes for a constant.
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
