// The condition and order for a range of an index, written so that the planner cannot read anything else.

/**
 * Selects the rows whose first columns are `values` and whose last column is before `before`, in descending order. For
 * `a = 1 and b < 2 order by b` the planner may read an index of `b` alone. It does so if statistics say that `a` is 1 in most
 * rows, or say nothing about `b`. Only an index of both columns answers the row comparison `(a, b) < (1, 2)`. The scan
 * begins at it, and ends at `a >= 1`. A column before these two is compared by `any`: the planner drops `a = 1` from the
 * order as a constant. There is no lower bound of the last column: up to PostgreSQL 17 no scan of such an index ends at it.
 * Callers apply it to the first rows that this selects.
 */
export function stretchOf(
  columns: readonly [string, string] | readonly [string, string, string],
  values: readonly [string] | readonly [string, string],
  before: string,
): string {
  const pair = columns.slice(-2)
  const [first, value] = [pair[0]!, values.at(-1)!]
  const equal = columns.length === 3 ? `${columns[0]} = any(array[${values[0]}]) and ` : ''
  return `${equal}${first} >= ${value} and (${pair.join(', ')}) < (${value}, ${before})
    order by ${columns.map((column) => `${column} desc`).join(', ')}`
}
