// The HTML of a message, made safe for a browser. This runs in a thread, as strangers write the HTML.
import { ServiceError } from '../../base/errors.ts'
import type { FairLimit } from '../../base/fair-limit.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import { maxSafeHtml, type SafeHtml } from '../../mail/read/shown-html.ts'
import type { Queryable } from '../../postgres/db.ts'
import type { LongText } from '../../store/long-text.ts'
import type { Caller } from '../caller.ts'
import { readMessage } from './read-mailbox.ts'

/** Security: nested elements can occupy a thread for seconds, so organizations share it fairly. */
type Deps = { db: Queryable; parsePool: Pick<ParsePool, 'pageOf'>; htmlLimit: FairLimit }

/** Throws `not_found` if the message has no HTML. */
export async function readPage(
  { db, parsePool, htmlLimit }: Deps,
  caller: Caller,
  messageId: string,
): Promise<SafeHtml> {
  const { html } = await readMessage(db, caller, messageId)
  if (html === null) throw new ServiceError('not_found', 'The message has no HTML.')
  const start = typeof html === 'string' ? html : await startOf(html)
  return await htmlLimit.run(caller.organizationId, () => parsePool.pageOf(start))
}

/** The part of the text that is shown, and slightly more, so that a cut is detected. */
async function startOf(text: LongText): Promise<string> {
  let read = ''
  for await (const piece of text.pieces()) {
    read += piece
    if (read.length > maxSafeHtml) break
  }
  return read
}
