// Counts of letters sent within a window of time, by a keyed digest of the subject and the window.
import type { Writer } from '../../postgres/db.ts'

export interface LetterCount {
  /** The digest includes the window, so that a new window is a new row. */
  subject: Buffer
  max: number
  endsAt: Date
}

/** Counts one more letter. Returns false and counts nothing if the window already has `max`. */
export async function countLetter(db: Writer, { subject, max, endsAt }: LetterCount): Promise<boolean> {
  const rows = await db.query(
    `insert into letter_count as c (subject, letters, ends_at) values ($1, 1, $2)
    on conflict (subject) do update set letters = c.letters + 1 where c.letters < $3 returning 1`,
    [subject, endsAt, max],
  )
  return rows.length > 0
}
