// Whether a mail's header says that a program wrote it, so that no other program may answer it.
import { readAuthor } from './author.ts'
import { withoutComments } from './comments.ts'
import type { HeaderScan } from './header-scan.ts'

const bulkPrecedences = new Set(['bulk', 'list', 'junk'])

/** Fields that only bulk mailers and lists write. `Feedback-ID` is Gmail's. */
const bulkFields = ['list-id', 'list-unsubscribe', 'feedback-id']

/** Matches `no-reply`, `shop.noreply`, `do_not_reply+7`, but not `casino-reply`, which has no border before the "no". */
const noReply = /(?:^|[-_.+])(?:no|do[-_.]?not|dont|never)[-_.]?reply(?:$|[-_.+\d])/i

/** Whether the local part says that replies are not read. The null sender (`''`) takes no replies either. */
export function takesNoReply(address: string): boolean {
  return address === '' || noReply.test(address.slice(0, address.lastIndexOf('@')))
}

/** True if any field or the author's address says so. Linear in the header. */
export function isAutomatic(header: HeaderScan): boolean {
  // RFC 3834 5.2: any value except "no" means that no person wrote the mail.
  if (header.values('auto-submitted').some((value) => keywordOf(value) !== 'no')) return true
  // RFC 3834 2: bulk mailers and lists use these values. Others, such as first-class, are about speed.
  if (header.values('precedence').some((value) => bulkPrecedences.has(keywordOf(value)))) return true
  // MS-OXCMAIL 2.2.3.2.14: lists the automatic answers that the sender does not want. "None" suppresses nothing.
  if (header.values('x-auto-response-suppress').some((value) => keywordOf(value) !== 'none')) return true
  // RFC 2919 3: only mailing lists write List-Id. Bulk mailers write the other fields.
  if (bulkFields.some((name) => header.count(name) > 0)) return true
  const author = readAuthor(header)
  return author !== null && takesNoReply(author.email)
}

/** The first word, in lower case, without comments and parameters. */
function keywordOf(value: string): string {
  const [keyword = ''] = withoutComments(value).split(';')
  return keyword.trim().toLowerCase()
}
