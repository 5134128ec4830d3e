// Whether a program wrote a mail, as its header says: what must not be answered by another program.
import { readAuthor } from './author.ts'
import { withoutComments } from './comments.ts'
import type { HeaderScan } from './header-scan.ts'

const bulkPrecedences = new Set(['bulk', 'list', 'junk'])

/** Fields that only bulk mailers and lists write; `Feedback-ID` is Gmail's. */
const bulkFields = ['list-id', 'list-unsubscribe', 'feedback-id']

/** `no-reply`, `shop.noreply`, `do_not_reply+7`; not `casino-reply`, which has no border before the "no". */
const noReply = /(?:^|[-_.+])(?:no|do[-_.]?not|dont|never)[-_.]?reply(?:$|[-_.+\d])/i

/** Whether its local part says that nobody reads answers. Mail from the null sender (`''`) takes none either. */
export function takesNoReply(address: string): boolean {
  return address === '' || noReply.test(address.slice(0, address.lastIndexOf('@')))
}

/** True if any field or the author's address says so; linear in the header. */
export function isAutomatic(header: HeaderScan): boolean {
  // RFC 3834 5.2: whatever is not "no" was not written by a person.
  if (header.values('auto-submitted').some((value) => keywordOf(value) !== 'no')) return true
  // RFC 3834 2: the values that bulk mailers and lists have; others, as first-class, are about speed.
  if (header.values('precedence').some((value) => bulkPrecedences.has(keywordOf(value)))) return true
  // MS-OXCMAIL 2.2.3.2.14: the automatic answers that the sender does not want; "None" suppresses nothing.
  if (header.values('x-auto-response-suppress').some((value) => keywordOf(value) !== 'none')) return true
  // RFC 2919 3: a field of mailing lists alone; the others are those of bulk mailers.
  if (bulkFields.some((name) => header.count(name) > 0)) return true
  const author = readAuthor(header)
  return author !== null && takesNoReply(author.email)
}

/** The first word, in lower case, without comments and parameters. */
function keywordOf(value: string): string {
  const [keyword = ''] = withoutComments(value).split(';')
  return keyword.trim().toLowerCase()
}
