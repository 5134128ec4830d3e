// Writes a batch so that a bad row never hurts its neighbours.
import { setTimeout as sleep } from 'node:timers/promises'
import { DbFault } from './db.ts'

/** How long rows are written again while it is unknown whether they were committed. A stop waits as long for its work. */
const unknownForMs = 20_000
const againAfterMs = 250

/**
 * Writes the rows together. Returns for each row its result, or the fault that this row caused. `write` must be
 * idempotent. After a conflict or a lost connection it runs once more with the same rows. If the first try was committed,
 * it must then return the results of that. While the outcome of a try is unknown, it runs again for 20 s. Rejects if the
 * database is unreachable after that. Rows that need a torn page then have that fault, and their neighbours a result.
 */
export async function commitRows<Row, Result>(
  rows: Row[],
  write: (rows: Row[]) => Promise<Result[]>,
): Promise<(Result | DbFault)[]> {
  try {
    return await write(rows)
  } catch (error) {
    if (!(error instanceof DbFault)) throw error
    if (error.kind === 'conflict' || error.kind === 'lost')
      return await writeAgain(rows, write, {
        isUnknown: error.isUnknown,
        untilMs: performance.now() + unknownForMs,
      })
    if (rows.length === 1) return [error]
    return await bisect(rows, (half) => commitRows(half, write))
  }
}

/**
 * The same ids make the outcome certain. If an earlier try is still running, its locks are waited for. If it runs later, it
 * finds the rows written. If it ran on a former primary, the present one has its rows or never will.
 */
async function writeAgain<Row, Result>(
  rows: Row[],
  write: (rows: Row[]) => Promise<Result[]>,
  { isUnknown, untilMs }: { isUnknown: boolean; untilMs: number },
): Promise<(Result | DbFault)[]> {
  for (; ; await sleep(againAfterMs)) {
    try {
      return await write(rows)
    } catch (error) {
      if (!(error instanceof DbFault)) throw error
      const isTorn = isUnknown && error.kind === 'damaged'
      // The rows on other pages learn their outcomes now.
      if (isTorn && rows.length > 1)
        return await bisect(rows, (half) => writeAgain(half, write, { isUnknown, untilMs }))
      const mayPass = error.kind === 'lost' || isTorn || (isUnknown && error.kind === 'conflict')
      if (!mayPass) return rows.length === 1 ? [error] : await bisect(rows, (half) => commitRows(half, write))
      isUnknown ||= error.isUnknown
      if (isUnknown && performance.now() <= untilMs) continue
      if (isTorn) return [error]
      throw error
    }
  }
}

async function bisect<Row, Outcome>(
  rows: Row[],
  writeHalf: (half: Row[]) => Promise<Outcome[]>,
): Promise<Outcome[]> {
  const middle = rows.length >> 1
  const first = await writeHalf(rows.slice(0, middle))
  return [...first, ...(await writeHalf(rows.slice(middle)))]
}
