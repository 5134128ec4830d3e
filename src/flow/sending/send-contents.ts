// Makes what is stored out of a send's body, once nothing stands against it, and what is large beside the main thread.
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId } from '../../base/ids.ts'
import { upon } from '../../base/upon.ts'
import type { ParsePool } from '../../mail/parse-pool.ts'
import { htmlToText } from '../../mail/read/html-text.ts'
import type { Db } from '../../postgres/db.ts'
import { maxInlineBytes } from '../../store/raws.ts'
import { foreseeRefusal } from '../../store/submissions.ts'
import type { Caller } from '../caller.ts'
import { contentOf, noContent, type SendContent, type SendFrame } from './compile-send.ts'
import {
  type DomainMessageBody,
  judgeSize,
  type MessageBody,
  type ReplyBody,
  type SendDraft,
} from './send-draft.ts'

type Body = MessageBody | ReplyBody | DomainMessageBody

/** Measured on the slowest shapes: 64 KiB take 3 ms. */
const mostAtOnce = 64 * 1024

/** One large HTML of each organization is with the thread at a time, so that many of one wait for each other alone. */
export class SendContents {
  readonly #deps: { db: Db; clock: Clock; parsePool: ParsePool }
  readonly #latest = new Map<OrganizationId, Promise<unknown>>()

  constructor(deps: { db: Db; clock: Clock; parsePool: ParsePool }) {
    this.#deps = deps
  }

  /**
   * What is made out of the body; nothing where it is refused, and, where making it costs much, only once nothing is known
   * to stand against it: who is refused all day long must not have it made each time. What it finds is noted in the draft.
   */
  make(
    caller: Caller,
    { operation, sender }: SendFrame,
    draft: SendDraft,
    body: Body,
    key: string,
  ): SendContent | Promise<SendContent> {
    if (draft.refusal) return noContent
    if (!isCostly(body)) return this.#contentOf(caller, draft, body)
    const { db, clock } = this.#deps
    const recipients = draft.recipients.map((recipient) => recipient.key)
    const asked = { organizationId: caller.organizationId, operation, key, inboxId: sender.id, recipients }
    return foreseeRefusal(db, asked, clock.now()).then((refusal) => {
      draft.refusal = refusal
      return refusal ? noContent : this.#contentOf(caller, draft, body)
    })
  }

  #contentOf(caller: Caller, draft: SendDraft, body: Body): SendContent | Promise<SendContent> {
    if (body.text !== undefined) return contentOf(body, body.text)
    return upon(this.#textOf(caller.organizationId, body.html ?? ''), (text) => {
      draft.contentBytes += Buffer.byteLength(text)
      draft.refusal = judgeSize(caller, draft.contentBytes)
      return draft.refusal ? noContent : contentOf(body, text)
    })
  }

  #textOf(organizationId: OrganizationId, html: string): string | Promise<string> {
    if (html.length <= mostAtOnce) return htmlToText(html)
    const make = () => this.#deps.parsePool.textOf(html)
    const text = (this.#latest.get(organizationId) ?? Promise.resolve()).then(make, make)
    this.#latest.set(organizationId, text)
    const forget = () => {
      if (this.#latest.get(organizationId) === text) this.#latest.delete(organizationId)
    }
    text.then(forget, forget)
    return text
  }
}

/** Whether a blob is to be written, a large text to be made, or much to be handed to the database. */
function isCostly({ text, html = '', attachments = [] }: Body): boolean {
  const attachedBytes = attachments.reduce((sum, { content }) => sum + content.length, 0)
  if (attachedBytes > maxInlineBytes || (text ?? '').length + html.length > maxInlineBytes) return true
  return text === undefined && html.length > mostAtOnce
}
