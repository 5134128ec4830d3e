// Watches a service's PostgreSQL while mail comes in: the age of the oldest unfiled mail, and the number of filed mails.
import type { Scope } from '../../tests/support/until.ts'
import { repeat } from '../load/schedule.ts'
import type { Posthorn } from './posthorn.ts'
import { openSession, shareDatabase } from './posthorn-store.ts'

/** One reading of the database. */
export interface SpoolState {
  /** Messages filed in the inbox since it was created. */
  filed: number
  /** The age of the oldest mail that has its 250 and is not filed. 0 if there is none. */
  oldestMs: number
}

export interface SpoolWatch {
  look(): Promise<SpoolState>
  /** Reads the state four times a second until `over`. Returns all readings. */
  follow(over: AbortSignal): Promise<SpoolState[]>
}

const lookMs = 250

/** The ids of the spool sort by time. */
const spoolState = `select (select message_seq from inbox where id = $1) as filed,
  (select extract(epoch from clock_timestamp() - received_at) * 1000 from spool order by id limit 1) as oldest_ms`

export async function watchSpool(scope: Scope, posthorn: Posthorn, inboxId: string): Promise<SpoolWatch> {
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  const look = async () => {
    const { rows } = await session.query(spoolState, [inboxId])
    return { filed: Number(rows[0].filed), oldestMs: Math.max(0, Number(rows[0].oldest_ms)) }
  }
  const follow = async (over: AbortSignal) => {
    const seen: SpoolState[] = []
    await repeat(async () => void seen.push(await look()), lookMs, over)
    return seen
  }
  return { look, follow }
}
