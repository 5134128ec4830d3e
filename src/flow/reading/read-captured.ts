// What the capture server took, as a development deployment shows it: the mail that would have left.
import type { Readable } from 'node:stream'
import { ServiceError } from '../../base/errors.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import type { ReadMail } from '../../mail/parse-worker.ts'
import { readHead } from '../../mail/read/parse.ts'
import type { SafeHtml } from '../../mail/read/safe-html.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type CapturedRow, findCaptured, listCaptured } from '../../store/mailbox/captured.ts'
import { openRaw, openStored } from '../stored-bytes.ts'

type Deps = { db: Queryable; blobs: Blobs }

/** How much of a mail is looked at for its subject. */
const startBytes = 8_192

export interface CapturedMessage {
  row: CapturedRow
  mail: ReadMail
  page: SafeHtml | null
}

/** A row with what its beginning says of it. */
export type CapturedHead = CapturedRow & ReturnType<typeof readHead>

/** A page of them, newest first, behind the one with the id `before`. */
export async function readCapturedPage(
  { db, blobs }: Deps,
  before: string | null,
  limit: number,
): Promise<CapturedHead[]> {
  const rows = await listCaptured(db, before, limit, startBytes)
  return await Promise.all(
    rows.map(async ({ bytes, blob, ...row }) => {
      const length = Math.min(startBytes, row.sizeBytes)
      const start = await openRaw(
        blobs,
        { id: row.rawId, sizeBytes: length, bytes, blob },
        { start: 0, length },
      )
      return { ...row, ...readHead(start ? Buffer.concat(await start.toArray()) : Buffer.alloc(0)) }
    }),
  )
}

/** `not_found` where it was never there, or is older than the newest 1,000. */
export async function openCaptured(
  deps: Deps,
  id: string,
): Promise<{ row: CapturedRow; sizeBytes: number; stream: Readable }> {
  const row = await findCaptured(deps.db, id)
  const stored = row && (await openStored(deps, row.rawId))
  if (!row || !stored) throw new ServiceError('not_found', 'There is no such captured mail.')
  return { row, ...stored }
}

/** The mail as it would be read where it was going to. */
export async function readCaptured(
  { parsePool, ...deps }: Deps & { parsePool: Pick<ParsePool, 'parse' | 'pageOf'> },
  id: string,
): Promise<CapturedMessage> {
  const { row, stream } = await openCaptured(deps, id)
  const mail = await parsePool.parse(Buffer.concat(await stream.toArray()))
  const html = mail.html === null ? null : textOf(mail.html)
  const page = html === null ? null : await parsePool.pageOf(html)
  return { row, mail: { ...mail, text: textOf(mail.text), html }, page }
}

function textOf(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : Buffer.from(text).toString()
}
