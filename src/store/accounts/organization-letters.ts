// Letters about organizations: those that are due, and marking them as sent.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'
import type { DueCondition } from '../due.ts'
import type { OrganizationLetter } from './organizations.ts'

/** An organization with its owners, oldest first. */
export interface LetterDueRow {
  id: OrganizationId
  name: string
  owners: string[]
}

/** Holds if a letter of one of these kinds is due. */
export function lettersDue(letters: readonly OrganizationLetter[]): DueCondition {
  const kinds = letters.map((letter) => `'${letter}'`)
  return `exists (select from organization where letter_due in (${kinds}))`
}

/** Lists due letters, oldest first: requests that are still pending, or approvals of organizations still active. */
export async function listLettersDue(
  db: Queryable,
  letter: OrganizationLetter,
  limit: number,
): Promise<LetterDueRow[]> {
  return await db.query<LetterDueRow>(
    `select o.id, o.name, coalesce(array_agg(p.email order by m.created_at) filter (where p.id is not null), '{}') as owners
    from organization o
    left join member m on m.organization_id = o.id and m.role = 'owner'
    left join person p on p.id = m.person_id
    where o.letter_due = $1 and o.status = $2
    group by o.id order by o.created_at, o.id limit $3`,
    [letter, letter === 'request' ? 'pending' : 'active', limit],
  )
}

/** Notes that the letter was sent, unless another letter is due by now. */
export async function clearLetterDue(
  db: Writer,
  id: OrganizationId,
  letter: OrganizationLetter,
): Promise<void> {
  await db.query('update organization set letter_due = null where id = $1 and letter_due = $2', [id, letter])
}
