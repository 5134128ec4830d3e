// Reads the content of a send without an inbox, which is kept for a limited time, for its page in the dashboard.
import type { FairLimit } from '../../base/fair-limit.ts'
import type { OrganizationId, SubmissionId } from '../../base/ids.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import { maxSafeHtml, type SafeHtml } from '../../mail/read/shown-html.ts'
import type { Queryable } from '../../postgres/db.ts'
import { findSentContent, type SentContent } from '../../store/sending/submission-life.ts'

/** Security: deeply nested HTML can occupy a thread for seconds. `htmlLimit` serves organizations in round robin. */
type Deps = { db: Queryable; parsePool: Pick<ParsePool, 'pageOf'>; htmlLimit: FairLimit }

/** The content with its HTML made safe. Null if it is deleted, or the submission has a message. */
export async function readSentContent(
  { db, parsePool, htmlLimit }: Deps,
  { id, organizationId }: { id: SubmissionId; organizationId: OrganizationId },
): Promise<(SentContent & { page: SafeHtml | null }) | null> {
  const content = await findSentContent(db, id, maxSafeHtml)
  if (!content) return null
  const { html } = content
  const page = html === null ? null : await htmlLimit.run(organizationId, () => parsePool.pageOf(html))
  return { ...content, page, isCut: content.isCut || page?.isCut === true }
}
