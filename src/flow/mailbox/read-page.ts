// The HTML of a message as a browser may show it; made in a thread, for it is a stranger's.
import { ServiceError } from '../../base/errors.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import type { SafeHtml } from '../../mail/read/safe-html.ts'
import type { Db } from '../../postgres/db.ts'
import type { LongText } from '../../store/long-text.ts'
import type { Caller } from '../caller.ts'
import { readMessage } from './read-mailbox.ts'

type Deps = { db: Db; parsePool: Pick<ParsePool, 'pageOf'> }

/** `not_found` where the message has no HTML. */
export async function readPage(
  { db, parsePool }: Deps,
  caller: Caller,
  messageId: string,
): Promise<SafeHtml> {
  const { html } = await readMessage(db, caller, messageId)
  if (html === null) throw new ServiceError('not_found', 'The message has no HTML.')
  return await parsePool.pageOf(typeof html === 'string' ? html : await whole(html))
}

async function whole(text: LongText): Promise<string> {
  let read = ''
  for await (const piece of text.pieces()) read += piece
  return read
}
