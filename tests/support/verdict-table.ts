// Compares our verdicts with those of others: if the others agree, ours must be the same.

export interface Comparison {
  method: string
  /** The thing that is judged. */
  subject: string
  ours: string | undefined
  /** By judge; undefined if the judge has no verdict. */
  others: Readonly<Record<string, string | undefined>>
}

export interface Difference {
  method: string
  subject: string
  ours: string | undefined
  theirs: string
}

/** Cases in which at least two others have the same verdict, and ours differs. */
export function findDifferences(comparisons: readonly Comparison[]): Difference[] {
  return comparisons.flatMap(({ method, subject, ours, others }) => {
    const theirs = agreed(others)
    return theirs !== null && theirs !== ours ? [{ method, subject, ours, theirs }] : []
  })
}

function agreed(others: Comparison['others']): string | null {
  const words = Object.values(others).filter((word) => word !== undefined)
  return words.length >= 2 && new Set(words).size === 1 ? words[0]! : null
}

interface Row {
  compared: number
  equal: number
}

/** A table of methods and judges: how often each was compared with ours, equal and different. One row counts all who agree. */
export function verdictTable(comparisons: readonly Comparison[]): string[] {
  const rows = new Map<string, Map<string, Row>>()
  const count = (method: string, name: string, isEqual: boolean) => {
    const columns = rows.get(method) ?? new Map<string, Row>()
    const row = columns.get(name) ?? { compared: 0, equal: 0 }
    rows.set(method, columns.set(name, { compared: row.compared + 1, equal: row.equal + (isEqual ? 1 : 0) }))
  }
  for (const { method, ours, others } of comparisons) {
    for (const [name, word] of Object.entries(others))
      if (word !== undefined) count(method, name, word === ours)
    const theirs = agreed(others)
    if (theirs !== null) count(method, 'all who agree', theirs === ours)
  }
  const line = (cells: string[]) => cells.map((cell) => cell.padEnd(19)).join('')
  const body = [...rows].flatMap(([method, columns]) =>
    [...columns].map(([name, { compared, equal }]) =>
      line([method, name, String(compared), String(equal), String(compared - equal)]).trimEnd(),
    ),
  )
  return [line(['method', 'judge', 'compared', 'equal', 'differing']).trimEnd(), ...body]
}
