// What PostgreSQL shows of a service while mail comes in: how long the oldest has waited to be filed, and how much is filed.
import type { Scope } from '../../tests/support/until.ts'
import { repeat } from '../load/schedule.ts'
import type { Posthorn } from './posthorn.ts'
import { openSession, shareDatabase } from './posthorn-store.ts'

/** One look at the database. */
export interface SpoolState {
  /** Filed in the inbox since it was made. */
  filed: number
  /** Of the oldest mail that has its 250 and is not filed; 0: there is none. */
  oldestMs: number
}

export interface SpoolWatch {
  look(): Promise<SpoolState>
  /** Looks four times a second until `over`, and gives what it saw. */
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
