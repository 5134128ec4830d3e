// Accepts sends: message, submission, recipients, idempotency record and usage commit together before the answer.
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch } from '../base/batch.ts'
import type { Clock } from '../base/clock.ts'
import { type RefusalCode, ServiceError } from '../base/errors.ts'
import { type InboxId, newId, newUuid, type SubmissionId, type ThreadId } from '../base/ids.ts'
import type { DiskBlobs } from '../blobs/disk.ts'
import type { Mailbox } from '../mail/address.ts'
import { htmlToText } from '../mail/html-text.ts'
import { commitRows } from '../store/commit.ts'
import { type Db, DbFault } from '../store/db.ts'
import { findInbox } from '../store/inboxes.ts'
import { findMessage, findThread, type MessageRow } from '../store/messages.ts'
import { insertRaws, maxInlineBytes, type RawRow } from '../store/raws.ts'
import { addRoutes } from '../store/routes.ts'
import {
  acceptSends,
  findSubmission,
  type SendContent,
  type SendControl,
  type SendOperation,
  type SendVerdict,
  type SubmissionRow,
} from '../store/submissions.ts'
import type { Caller } from './caller.ts'
import type { Idempotency } from './idempotency.ts'
import { replyRecipients, replyReferences, replySubject } from './reply-draft.ts'
import { type RoutePolicy, routeOf } from './routes.ts'
import {
  attachmentEntries,
  canonical,
  draftSend,
  type MessageBody,
  type Refusal,
  type ReplyBody,
  type SendDraft,
} from './send-draft.ts'

/** The answer to an accepted send, or to one that was accepted before. */
export interface Accepted {
  message: MessageRow
  submission: SubmissionRow
  replayed: boolean
}

export interface AcceptanceDeps {
  db: Db
  clock: Clock
  blobs: DiskBlobs
  routePolicy: RoutePolicy
  lifetimeMs: number
  /** Tells the delivery engine that these routes have work. */
  wake(routes: string[]): void
}

/** A send on its way into a batch. */
interface PendingSend {
  control: SendControl
  content: SendContent
  raw: RawRow | null
  sizeBytes: number
}

interface Sender {
  id: InboxId
  mailbox: Mailbox
  domain: string
}

/** What differs between a new message and a reply. */
interface SendFrame {
  operation: SendOperation
  sender: Sender
  thread: { id: ThreadId; kind: 'new' | 'known'; subject: string }
  subject: string
  inReplyTo: string | null
  references: string[]
}

const runningWaitMs = 5_000
const maxKnown = 50_000

/** Takes sends from callers, in batches, exactly once for each idempotency key. */
export class Acceptance {
  readonly #deps: AcceptanceDeps
  readonly #batch: Batch<PendingSend, SendVerdict | DbFault>
  readonly #running = new Map<string, Promise<unknown>>()
  readonly #knownRoutes = new Set<string>()
  readonly #senders = new Map<string, Sender>()

  constructor(deps: AcceptanceDeps) {
    this.#deps = deps
    this.#batch = new Batch({ flush: (sends) => this.#flush(sends), sizeOf: ({ sizeBytes }) => sizeBytes })
  }

  /** Accepts a new message from an inbox; resolves after the commit. */
  async acceptMessage(
    caller: Caller,
    inboxId: string,
    body: MessageBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    const sender = await this.#sender(caller, inboxId)
    const draft = draftSend(caller, { to: body.to, cc: body.cc ?? [], bcc: body.bcc ?? [] }, body)
    if (!sender) draft.refusal = { code: 'not_found' }
    else draft.refusal = refuseInbox(caller, sender.id) ?? refuseNew(caller) ?? draft.refusal
    const frame: SendFrame = {
      operation: 'message',
      sender: sender ?? nobody,
      thread: { id: newId('thread', this.#deps.clock.nowMs()), kind: 'new', subject: body.subject },
      subject: body.subject,
      inReplyTo: null,
      references: [],
    }
    return await this.#once(caller, frame, draft, body, idempotency)
  }

  /** Accepts a reply within a thread; resolves after the commit. */
  async acceptReply(
    caller: Caller,
    threadId: string,
    body: ReplyBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    const { db } = this.#deps
    const thread = await findThread(db, caller.organizationId, threadId)
    const target = thread && (await findMessage(db, caller.organizationId, body.targetMessageId))
    const sender = thread && (await this.#sender(caller, thread.inboxId))
    if (!sender || target?.threadId !== thread.id) {
      const draft = draftSend(caller, { to: [], cc: [], bcc: [] }, body)
      return await this.#once(
        caller,
        nowhere(threadId as ThreadId),
        { ...draft, refusal: { code: 'not_found' } },
        body,
        idempotency,
      )
    }
    const addressed = replyRecipients(target, sender.mailbox.email, body.replyAll ? 'all' : 'sender')
    const draft = draftSend(caller, { ...addressed, bcc: [] }, body)
    draft.refusal = refuseInbox(caller, sender.id) ?? draft.refusal
    if (draft.recipients.length === 0) draft.refusal ??= unanswerable
    const frame: SendFrame = {
      operation: 'reply',
      sender,
      thread: { id: thread.id, kind: 'known', subject: thread.subject },
      subject: replySubject(thread.subject),
      inReplyTo: target.internetMessageId,
      references: replyReferences(target),
    }
    return await this.#once(caller, frame, draft, body, idempotency)
  }

  /** Resolves when everything taken has been answered. */
  async drained(): Promise<void> {
    await this.#batch.drained()
  }

  /** Requests with one idempotency key run one after the other, so that the later ones see the first one's result. */
  async #once(
    caller: Caller,
    frame: SendFrame,
    draft: SendDraft,
    body: MessageBody | ReplyBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    const name = `${caller.organizationId} ${frame.operation} ${idempotency.key}`
    const deadlineMs = this.#deps.clock.monotonicMs() + runningWaitMs
    for (let earlier = this.#running.get(name); earlier; earlier = this.#running.get(name)) {
      const waitMs = deadlineMs - this.#deps.clock.monotonicMs()
      if (waitMs <= 0) throw new ServiceError('idempotency_in_progress', undefined, 1)
      await Promise.race([earlier, sleep(waitMs, undefined, { ref: false })])
    }
    const run = this.#accept(caller, frame, draft, body, idempotency)
    this.#running.set(
      name,
      run.catch(() => {}),
    ) // whoever waits only wants to know that it is over
    try {
      return await run
    } finally {
      this.#running.delete(name)
    }
  }

  async #accept(
    caller: Caller,
    frame: SendFrame,
    draft: SendDraft,
    body: MessageBody | ReplyBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    const send = this.#compile(caller, frame, draft, body, idempotency)
    if (!draft.refusal) await Promise.all([this.#keepLarge(send.raw), this.#addRoutes(send.content)])
    const verdict = await this.#batch.add(send)
    if (verdict instanceof DbFault) throw verdict
    if (verdict.verdict === 'accepted') {
      this.#deps.wake(send.content.deliveries.map(({ route }) => route))
      return acceptedOf(caller, send)
    }
    if (send.raw?.blob) await this.#deps.blobs.delete(send.raw.blob)
    if (verdict.verdict === 'replayed') return await this.#replay(caller, verdict.submissionId)
    throw refused(verdict, draft.refusal)
  }

  #compile(
    caller: Caller,
    frame: SendFrame,
    draft: SendDraft,
    body: MessageBody | ReplyBody,
    idempotency: Idempotency,
  ): PendingSend {
    const { clock, routePolicy, lifetimeMs } = this.#deps
    const at = clock.now()
    const messageId = newId('message', at.getTime())
    const attachments = body.attachments ?? []
    const raw = attachments.length > 0 ? rawOf(attachments.map(({ content }) => content)) : null
    const { to, cc, bcc, recipients } = draft
    const replyTo = 'replyTo' in body ? body.replyTo : undefined
    const control: SendControl = {
      ...{ i: 0, org: caller.organizationId, key: caller.id, op: frame.operation, idem: idempotency.key },
      ...{
        hash: idempotency.requestHash.toString('hex'),
        refusal: draft.refusal?.code ?? null,
        inbox: frame.sender.id,
      },
      ...{
        thread: frame.thread.id,
        fresh: frame.thread.kind === 'new',
        sub: newUuid<SubmissionId>(),
        recipients: recipients.length,
      },
    }
    const content: SendContent = {
      i: 0,
      id: messageId,
      mid: `<${messageId.slice(4)}@${frame.sender.domain}>`,
      irt: frame.inReplyTo,
      refs: frame.references,
      sender: frame.sender.mailbox,
      rcpts: {
        to,
        ...(cc.length > 0 && { cc }),
        ...(bcc.length > 0 && { bcc }),
        ...(replyTo && { replyTo: canonical(replyTo).mailbox }),
      },
      participants: [frame.sender.mailbox, ...to, ...cc].map(({ email }) => email),
      subject: frame.subject,
      thread_subject: frame.thread.subject,
      body: body.text ?? htmlToText(body.html ?? ''),
      html: body.html ?? null,
      metadata: body.metadata ?? {},
      purpose: body.purpose ?? 'unclassified',
      attachments: attachmentEntries(attachments),
      raw: raw?.id ?? null,
      deliveries: recipients.map(({ email, key, domain }, position) => ({
        ...{ position, email, key, domain, route: routeOf(routePolicy, domain) },
      })),
      at,
      expires_at: new Date(at.getTime() + lifetimeMs),
    }
    return { control, content, raw, sizeBytes: 2_000 + draft.contentBytes + 300 * recipients.length }
  }

  /** Bytes too large for a row go to the blob store, flushed, before the commit that names them. */
  async #keepLarge(raw: RawRow | null): Promise<void> {
    if (!raw?.bytes || raw.sizeBytes <= maxInlineBytes) return
    await this.#deps.blobs.put(raw.id, raw.bytes)
    raw.blob = raw.id
    raw.bytes = null
  }

  async #addRoutes({ deliveries }: SendContent): Promise<void> {
    const unknown = deliveries.map(({ route }) => route).filter((route) => !this.#knownRoutes.has(route))
    if (unknown.length === 0) return
    await addRoutes(this.#deps.db, unknown, this.#deps.clock.now())
    if (this.#knownRoutes.size > maxKnown) this.#knownRoutes.clear()
    for (const route of unknown) this.#knownRoutes.add(route)
  }

  async #flush(sends: PendingSend[]): Promise<(SendVerdict | DbFault)[]> {
    const { db, clock } = this.#deps
    return await commitRows(sends, async (rows) => {
      const control = rows.map((send, i) => ({ ...send.control, i }))
      const content = rows.map((send, i) => ({ ...send.content, i }))
      const at = clock.now()
      if (!rows.some(({ raw }) => raw)) return await acceptSends(db, control, content, at)
      return await db.transaction(async (tx) => {
        const verdicts = await acceptSends(tx, control, content, at)
        const raws = rows.flatMap(({ raw }, i) => (raw && verdicts[i]?.verdict === 'accepted' ? [raw] : []))
        await insertRaws(tx, raws, at)
        return verdicts
      })
    })
  }

  async #replay(caller: Caller, submissionId: SubmissionId): Promise<Accepted> {
    const { db } = this.#deps
    const submission = await findSubmission(db, caller.organizationId, submissionId)
    const message =
      submission?.messageId && (await findMessage(db, caller.organizationId, submission.messageId))
    if (!submission || !message) throw new ServiceError('idempotency_result_expired')
    return { message, submission, replayed: true }
  }

  /** An inbox's address and name never change, so they are remembered; whether it lives, acceptance asks each time. */
  async #sender(caller: Caller, inboxId: string): Promise<Sender | null> {
    const name = `${caller.organizationId} ${inboxId}`
    const known = this.#senders.get(name)
    if (known) return known
    const inbox = await findInbox(this.#deps.db, caller.organizationId, inboxId)
    if (inbox?.status !== 'active') return null
    const email = `${inbox.localPart}@${inbox.domain}`
    const sender = { id: inbox.id, mailbox: { email, name: inbox.displayName }, domain: inbox.domain }
    if (this.#senders.size > maxKnown) this.#senders.clear()
    this.#senders.set(name, sender)
    return sender
  }
}

const nobody: Sender = { id: '' as InboxId, mailbox: { email: '' }, domain: '' }

/** The frame of a reply to what does not exist: it can only turn out to be a replay. */
function nowhere(threadId: ThreadId): SendFrame {
  const thread = { id: threadId, kind: 'known' as const, subject: '' }
  return { operation: 'reply', sender: nobody, thread, subject: '', inReplyTo: null, references: [] }
}

const unanswerable: Refusal = {
  code: 'invalid_request',
  detail: '/targetMessageId: the message has no address to reply to',
}

function refuseInbox(caller: Caller, inboxId: InboxId): Refusal | null {
  return caller.inboxIds && !caller.inboxIds.includes(inboxId) ? { code: 'inbox_not_allowed' } : null
}

function refuseNew(caller: Caller): Refusal | null {
  return caller.sendMode === 'reply_only' ? { code: 'send_mode_reply_only' } : null
}

function rawOf(contents: Buffer[]): RawRow {
  const bytes = Buffer.concat(contents)
  return { id: newUuid(), sizeBytes: bytes.length, bytes, blob: null }
}

function refused({ verdict, retryAfterSeconds }: SendVerdict, refusal: Refusal | null): ServiceError {
  const detail = refusal?.code === verdict ? refusal.detail : undefined
  return new ServiceError(verdict as RefusalCode, detail, retryAfterSeconds ?? undefined)
}

/** The answer's rows, from what was just written. */
function acceptedOf(caller: Caller, { control, content }: PendingSend): Accepted {
  const { organizationId } = caller
  const inboxId = control.inbox as InboxId
  const shared = {
    ...{
      organizationId,
      inboxId,
      sender: content.sender,
      subject: content.subject,
      metadata: content.metadata,
    },
    ...{ purpose: content.purpose, failureCode: null, createdAt: content.at, updatedAt: content.at },
  }
  const message: MessageRow = {
    ...{ ...shared, id: content.id, threadId: control.thread as ThreadId, seq: 0, direction: 'outbound' },
    ...{
      internetMessageId: content.mid,
      inReplyTo: content.irt,
      referenceIds: content.refs,
      recipients: content.rcpts,
    },
    ...{
      text: content.body,
      html: content.html,
      extractedText: null,
      attachments: content.attachments,
      security: null,
    },
    ...{ submissionId: control.sub, submissionStatus: 'pending', rawId: content.raw },
  }
  const recipients = content.deliveries.map(({ email }) => ({
    ...{
      email,
      status: 'pending' as const,
      response: null,
      updatedAt: content.at.toISOString(),
      attempts: 0,
    },
  }))
  const submission: SubmissionRow = {
    ...{ ...shared, id: control.sub, messageId: content.id, recipients, status: 'pending', response: null },
  }
  return { message, submission, replayed: false }
}
