// Letters that were sent within a window of time, counted by a keyed digest of the subject and its window.
import type { Writer } from '../../postgres/db.ts'

export interface LetterCount {
  /** The digest names the window as well: a new window is a new row. */
  subject: Buffer
  max: number
  endsAt: Date
}

/** Counts one letter more; false, and nothing counted, if the window has `max` already. */
export async function countLetter(db: Writer, { subject, max, endsAt }: LetterCount): Promise<boolean> {
  const rows = await db.query(
    `insert into letter_count as c (subject, letters, ends_at) values ($1, 1, $2)
    on conflict (subject) do update set letters = c.letters + 1 where c.letters < $3 returning 1`,
    [subject, endsAt, max],
  )
  return rows.length > 0
}
