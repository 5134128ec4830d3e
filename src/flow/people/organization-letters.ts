// Letters about requests for access: one to the operator for each request, one to each owner for the approval.
import { ServiceError } from '../../base/errors.ts'
import type { Db } from '../../postgres/db.ts'
import {
  clearLetterDue,
  type LetterDueRow,
  lettersDue,
  listLettersDue,
} from '../../store/accounts/organization-letters.ts'
import type { OrganizationLetter } from '../../store/accounts/organizations.ts'
import { approvalLetter, requestLetter } from './letters.ts'
import type { Post } from './post.ts'

interface OrganizationLettersDeps {
  db: Db
  post: Pick<Post, 'send'>
  /** Null: letters about requests stay due until the operator has an address. */
  operatorMail: string | null
  /** The addresses that the letters link to. */
  links: { pages: string; desk: string }
}

const batch = 50

/** Holds if `sendOrganizationLetters` can send a letter. */
export function organizationLettersDue({
  operatorMail,
}: Pick<OrganizationLettersDeps, 'operatorMail'>): string {
  return lettersDue(operatorMail === null ? ['approval'] : ['approval', 'request'])
}

/** Sends a batch of due letters. True if more may be due. */
export async function sendOrganizationLetters(deps: OrganizationLettersDeps): Promise<boolean> {
  const hasMore = await sendDue(deps, 'approval')
  return (deps.operatorMail !== null && (await sendDue(deps, 'request'))) || hasMore
}

/**
 * After a crash between sending and recording, the letter is sent again. Its key makes sure that it is accepted only once. A
 * letter that cannot be accepted now stays due.
 */
async function sendDue(deps: OrganizationLettersDeps, kind: OrganizationLetter): Promise<boolean> {
  const rows = await listLettersDue(deps.db, kind, batch)
  for (const row of rows) {
    try {
      for (const { to, letter } of lettersOf(deps, kind, row))
        await deps.post.send(to, letter, `${kind}:${row.id}:${to}`)
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'unavailable') return false
      throw error
    }
    await clearLetterDue(deps.db.writer, row.id, kind)
  }
  return rows.length === batch
}

function lettersOf(
  { operatorMail, links }: OrganizationLettersDeps,
  kind: OrganizationLetter,
  row: LetterDueRow,
) {
  if (kind === 'request')
    return operatorMail === null ? [] : [{ to: operatorMail, letter: requestLetter(row, links.desk) }]
  return row.owners.map((to) => ({ to, letter: approvalLetter(row, links.pages) }))
}
