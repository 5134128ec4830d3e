// Skip scans find one row for each value of an index's first column, with one index probe per value.

/**
 * Returns a recursive common table expression with the first row, in `order`, of each value of the first of `columns`.
 * `from` is a table and a condition that an index answers.
 */
export function skipScan(name: string, columns: string, from: string, order = columns): string {
  const [value] = columns.split(',')
  const first = (condition: string) => `select ${columns} from ${from}${condition} order by ${order} limit 1`
  return `${name} as (
    (${first('')})
    union all
    select next.* from ${name} cross join lateral (${first(` and ${value} > ${name}.${value}`)}) next
  )`
}
