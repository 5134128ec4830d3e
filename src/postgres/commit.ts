// Writes a batch so that a bad row never hurts its neighbours.
import { DbFault } from './db.ts'

/**
 * Writes the rows together. Returns for each row its result, or the fault that this row caused. `write` must be
 * idempotent. After a conflict or a lost connection it runs once more with the same rows. If the first try was committed,
 * it must then return the results of that. Rejects if the database stays unreachable.
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
