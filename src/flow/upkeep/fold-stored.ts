// Takes what was deleted off the counters of what organizations keep.
import type { Db } from '../../postgres/db.ts'
import { foldStored } from '../../store/accounts/usage.ts'

/** Few enough that receiving waits a few milliseconds at most. */
const deltas = 500

/** Returns whether there is more to do at once. */
export async function foldStoredBytes({ db }: { db: Db }): Promise<boolean> {
  return (await foldStored(db.writer, deltas)) === deltas
}
