// One way to write a batch so that a bad row never hurts its neighbours.
import { DbFault } from './db.ts'

/**
 * Writes the rows together; returns a result for each, or the fault that is that row's own. `write` must be safe to
 * run again with the same rows: after a conflict or a lost connection it runs once more, which also finds out what had
 * become of the first try. Rejects when the database stays out of reach.
 */
export async function commitRows<Row, Result>(
  rows: Row[],
  write: (rows: Row[]) => Promise<Result[]>,
): Promise<(Result | DbFault)[]> {
  try {
    return await write(rows)
  } catch (error) {
    if (!(error instanceof DbFault)) throw error
    if (error.kind === 'conflict' || error.kind === 'lost') return await writeAgain(rows, write)
    if (rows.length === 1) return [error]
    return await bisect(rows, write)
  }
}

async function writeAgain<Row, Result>(
  rows: Row[],
  write: (rows: Row[]) => Promise<Result[]>,
): Promise<(Result | DbFault)[]> {
  try {
    return await write(rows)
  } catch (error) {
    if (!(error instanceof DbFault) || error.kind === 'lost') throw error
    return rows.length === 1 ? [error] : await bisect(rows, write)
  }
}

async function bisect<Row, Result>(
  rows: Row[],
  write: (rows: Row[]) => Promise<Result[]>,
): Promise<(Result | DbFault)[]> {
  const middle = rows.length >> 1
  const first = await commitRows(rows.slice(0, middle), write)
  return [...first, ...(await commitRows(rows.slice(middle), write))]
}
