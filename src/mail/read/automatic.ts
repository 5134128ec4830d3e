// Whether a program wrote a mail, as its header says: what must not be answered by another program.
import { withoutComments } from './comments.ts'
import type { HeaderScan } from './header-scan.ts'

const bulkPrecedences = new Set(['bulk', 'list', 'junk'])

/** True where any of its fields says so; linear in the header. A mail from the null sender is automatic as well. */
export function isAutomatic(header: HeaderScan): boolean {
  // RFC 3834 5.2: whatever is not "no" was not written by a person.
  if (header.values('auto-submitted').some((value) => keywordOf(value) !== 'no')) return true
  // RFC 3834 2: the values that bulk mailers and lists have; others, as first-class, are about speed.
  if (header.values('precedence').some((value) => bulkPrecedences.has(keywordOf(value)))) return true
  // RFC 2919 3: a field of mailing lists alone.
  return header.count('list-id') > 0
}

/** The first word, in lower case, without comments and parameters. */
function keywordOf(value: string): string {
  const [keyword = ''] = withoutComments(value).split(';')
  return keyword.trim().toLowerCase()
}
