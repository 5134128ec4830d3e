// Reads rows by their ids, so that a torn page of the database holds back only the rows that need it.
import { DbFault } from './db.ts'

/** The rows that were read, those of earlier ids first, and the fault of each id that could not be read now. */
interface Untorn<Id, Row> {
  rows: Row[]
  torn: Map<Id, DbFault>
}

/** Reads all ids at once. If the read is `damaged`, reads them in halves until each damaged id is alone. */
export async function readUntorn<Id, Row>(
  ids: readonly Id[],
  read: (ids: readonly Id[]) => Promise<Row[]>,
): Promise<Untorn<Id, Row>> {
  try {
    return { rows: await read(ids), torn: new Map() }
  } catch (error) {
    if (!isTorn(error)) throw error
    if (ids.length === 1) return { rows: [], torn: new Map([[ids[0]!, error]]) }
    const middle = ids.length >> 1
    const first = await readUntorn(ids.slice(0, middle), read)
    const second = await readUntorn(ids.slice(middle), read)
    return { rows: [...first.rows, ...second.rows], torn: new Map([...first.torn, ...second.torn]) }
  }
}

/** Whether a page or a file of the database is torn. */
export function isTorn(error: unknown): error is DbFault {
  return error instanceof DbFault && error.kind === 'damaged'
}
