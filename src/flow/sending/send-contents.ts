// Makes the stored content of a send from its request body. Slow HTML is converted to text outside the main thread.
import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { FairLimit } from '../../base/fair-limit.ts'
import { newUuid, type OrganizationId } from '../../base/ids.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import type { ReadMail } from '../../mail/parse-worker.ts'
import { htmlToText } from '../../mail/read/html-text.ts'
import type { Db } from '../../postgres/db.ts'
import type { AttachmentEntry } from '../../store/mailbox/messages.ts'
import { maxInlineBytes, type RawRow } from '../../store/mailbox/raws.ts'
import { foreseeRefusal } from '../../store/sending/sends.ts'
import type { SendingCaller } from '../caller.ts'
import { withMailBytes } from '../stored-bytes.ts'
import {
  type AttachmentBody,
  type ComposedBody,
  contentBytes,
  type Recipient,
  type SendBody,
  type SendDraft,
} from './send-draft.ts'
import { requireSize } from './send-policy.ts'
import { refuseSend } from './send-refusal.ts'

/** The stored content of a body. */
export interface SendContent {
  text: string
  attachments: AttachmentEntry[]
  /** The whole message if a client wrote it. Otherwise the attachments' bytes, one after the other; null if none. */
  raw: RawRow | null
}

type ForeseenSend = Pick<SendDraft, 'operation'> & {
  inboxId: string | null
  recipients: readonly Recipient[]
}

/** Measured on the slowest shapes of HTML without style rules: 16 KiB take 10 ms of CPU. */
const maxBytesAtOnce = 16 * 1024

interface SendContentsDeps {
  db: Db
  clock: Clock
  blobs: Blobs
  parsePool: ParsePool
}

/** Converts one slow HTML at a time, in round robin over organizations, so that no organization can delay others for long. */
export class SendContents {
  readonly #deps: SendContentsDeps
  readonly #large = new FairLimit(1)

  constructor(deps: SendContentsDeps) {
    this.#deps = deps
  }

  /**
   * Makes the content. Before costly work, throws if the database would refuse the send now. Without this check, each send
   * over a daily limit would cause the work.
   */
  async make(caller: SendingCaller, draft: SendDraft, body: SendBody): Promise<SendContent> {
    if ('raw' in body) return { text: body.text, attachments: body.entries, raw: body.raw }
    if (isCostly(body)) await this.#requireForeseen(caller, { ...draft, inboxId: draft.sender.id })
    const text = body.text ?? (await this.#textOf(caller.organizationId, body.html ?? ''))
    if (body.text === undefined) requireSize(caller, contentBytes(body) + Buffer.byteLength(text))
    const { attachments = [] } = body
    return { text, attachments: attachments.map(attachmentEntry), raw: attachmentBytes(attachments) }
  }

  /**
   * Parses a mail that a client wrote, one at a time, in round robin over organizations. Before that, throws if the database
   * would refuse a large one now.
   */
  async read(caller: SendingCaller, raw: RawRow, recipients: readonly Recipient[]): Promise<ReadMail> {
    requireSize(caller, raw.sizeBytes)
    if (raw.sizeBytes > maxInlineBytes)
      await this.#requireForeseen(caller, { operation: 'submission', inboxId: null, recipients })
    const { blobs, parsePool } = this.#deps
    const parse = () => withMailBytes(blobs, raw, (bytes) => parsePool.parse(bytes))
    return await this.#large.run(caller.organizationId, parse)
  }

  async #requireForeseen(
    caller: SendingCaller,
    { operation, inboxId, recipients }: ForeseenSend,
  ): Promise<void> {
    const { organizationId } = caller
    const asked = { organizationId, inboxId, recipients: recipients.map(({ key }) => key) }
    const refusal = await foreseeRefusal(this.#deps.db, asked, this.#deps.clock.now())
    if (refusal) throw refuseSend(caller, { operation }, refusal)
  }

  async #textOf(organizationId: OrganizationId, html: string): Promise<string> {
    if (!isSlow(html)) return htmlToText(html)
    return await this.#large.run(organizationId, () => this.#deps.parsePool.textOf(html))
  }
}

/** Whether the body needs a blob, a slow conversion of HTML, or a large write to the database. */
function isCostly({ text, html = '', attachments = [] }: ComposedBody): boolean {
  const attachedBytes = attachments.reduce((sum, { content }) => sum + content.length, 0)
  if (attachedBytes > maxInlineBytes || (text ?? '').length + html.length > maxInlineBytes) return true
  return text === undefined && isSlow(html)
}

/** Whether the conversion may block other requests for too long. Style rules may be matched against every element. */
function isSlow(html: string): boolean {
  return html.length > maxBytesAtOnce || /<style/i.test(html)
}

/** Describes one attachment. The message's raw row holds the bytes of all attachments in the same order. */
function attachmentEntry({ filename, contentType, content, contentId }: AttachmentBody): AttachmentEntry {
  return {
    filename,
    contentType,
    size: content.length,
    disposition: contentId === undefined ? 'attachment' : 'inline',
    contentId: contentId ?? null,
    sha256: createHash('sha256').update(content).digest('hex'),
    scanState: 'unscanned',
  }
}

function attachmentBytes(attachments: AttachmentBody[]): RawRow | null {
  if (attachments.length === 0) return null
  const bytes = Buffer.concat(attachments.map(({ content }) => content))
  return { id: newUuid(), sizeBytes: bytes.length, bytes, blob: null }
}
