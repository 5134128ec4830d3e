// Subtracts deleted bytes from the counters of the organizations' stored bytes.
import type { Db } from '../../postgres/db.ts'
import { foldStored } from '../../store/accounts/usage.ts'

/** Few enough to delay receiving by only a few milliseconds. */
const deltas = 500

/** Returns whether more is due now. */
export async function foldStoredBytes({ db }: { db: Db }): Promise<boolean> {
  return (await foldStored(db.writer, deltas)) === deltas
}
