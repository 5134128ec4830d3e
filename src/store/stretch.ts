// A stretch of an index, written so that no plan reads anything else.

/**
 * Where and in which order the rows stand whose first columns are `values` and whose last is from the first bound on and
 * before the second, the last row first. Of `a = 1 … order by b` it would be planned, where statistics say that most rows
 * have a 1, to go through all of b; ordered by a as well, which `any` keeps from being taken for a constant, it cannot be.
 */
export function stretchOf(
  columns: readonly [first: string, ...others: string[]],
  values: readonly [first: string, ...others: string[]],
  [from, before]: readonly [from: string, before: string],
): string {
  const [[first, ...middle], last] = [columns, columns.at(-1)!]
  const equal = values.slice(1).map((value, index) => `and ${middle[index]} = ${value}`)
  return `${first} = any(array[${values[0]}]) ${equal.join(' ')} and ${last} >= ${from} and ${last} < ${before}
    order by ${first} desc, ${last} desc`
}
