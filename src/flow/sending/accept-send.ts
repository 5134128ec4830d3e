// Accepts sends: message, submission, recipients, idempotency record and usage commit together before the answer.
import { setTimeout as sleep } from 'node:timers/promises'
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import { newId, type SubmissionId, type ThreadId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { traced } from '../../base/trace.ts'
import { allOf, upon } from '../../base/upon.ts'
import type { DiskBlobs } from '../../blobs/disk.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import { findInbox } from '../../store/inboxes.ts'
import { findMessage, findThread, type MessageRow } from '../../store/messages.ts'
import { insertRaws, maxInlineBytes, type RawRow } from '../../store/raws.ts'
import { addRoutes } from '../../store/routes.ts'
import {
  acceptSends,
  findSubmissions,
  type NewSend,
  type SendVerdict,
  type SubmissionRow,
} from '../../store/submissions.ts'
import type { Caller } from '../caller.ts'
import type { Idempotency } from '../idempotency.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { type RoutePolicy, routeOf } from '../route-policy.ts'
import { queueIdOf } from '../states.ts'
import { acceptedOf, compileSend, nobody, nowhere, type Sender, type SendFrame } from './compile-send.ts'
import { replyRecipients, replyReferences, replySubject } from './reply-draft.ts'
import type { SendContents } from './send-contents.ts'
import {
  canonical,
  type DomainMessageBody,
  draftSend,
  type MessageBody,
  type Refusal,
  type ReplyBody,
  type SendDraft,
} from './send-draft.ts'
import { judgeSender } from './send-policy.ts'

/** The answer to an accepted send, or to one that was accepted before. */
export interface Accepted {
  message: MessageRow
  submission: SubmissionRow
  replayed: boolean
}

/** The same for a send of no inbox, which has no message. */
export interface AcceptedSend {
  message: MessageRow | null
  submission: SubmissionRow
  replayed: boolean
}

export interface AcceptanceDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: DiskBlobs
  domains: ProvedDomains
  routePolicy: RoutePolicy
  lifetimeMs: number
  contents: SendContents
  /** Tells the delivery engine that these routes have work. */
  wake(routes: string[]): void
}

/** A send on its way into a batch. */
interface PendingSend {
  send: NewSend
  /** The bytes of its attachments. */
  raw: RawRow | null
  sizeBytes: number
}

const runningWaitMs = 5_000
const maxKnown = 50_000

/** Takes sends from callers, in batches, exactly once for each idempotency key. */
export class Acceptance {
  readonly #deps: AcceptanceDeps
  readonly #batch: Batch<PendingSend, SendVerdict | DbFault>
  readonly #results: Batch<SubmissionId, SubmissionRow | undefined>
  readonly #running = new Map<string, Promise<AcceptedSend>>()
  readonly #knownRoutes = new Set<string>()
  readonly #senders = new Map<string, Sender>()

  constructor(deps: AcceptanceDeps) {
    this.#deps = deps
    this.#batch = new Batch({
      name: 'accept',
      flush: (sends) => this.#flush(sends),
      sizeOf: ({ sizeBytes }) => sizeBytes,
    })
    this.#results = new Batch({ name: 'replay', flush: (ids) => readResults(deps.db, ids) })
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
    draft.refusal = sender ? await this.#judge(caller, sender, 'conversation', draft) : { code: 'not_found' }
    const frame: SendFrame = {
      operation: 'message',
      sender: sender ?? nobody,
      thread: { id: newId('thread', this.#deps.clock.nowMs()), kind: 'new', subject: body.subject },
      subject: body.subject,
      inReplyTo: null,
      references: [],
    }
    return withMessage(await this.#once(caller, frame, draft, body, idempotency))
  }

  /** Accepts a message through a domain, without an inbox; resolves after the commit. */
  async acceptFromDomain(
    caller: Caller,
    body: DomainMessageBody,
    idempotency: Idempotency,
  ): Promise<AcceptedSend> {
    const { mailbox, domain } = canonical(body.from)
    const draft = draftSend(caller, { to: body.to, cc: [], bcc: [] }, body)
    const proved = await this.#deps.domains.findSending(caller.organizationId, domain)
    const sender: Sender = { id: null, mailbox, domain, domainId: proved?.id ?? null }
    draft.refusal = await this.#judge(caller, sender, 'conversation', draft)
    const { subject } = body
    const frame: SendFrame = {
      operation: 'send',
      sender,
      thread: null,
      subject,
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
      const frame = nowhere(threadId as ThreadId)
      const refused = { ...draft, refusal: { code: 'not_found' as const } }
      return withMessage(await this.#once(caller, frame, refused, body, idempotency))
    }
    const addressed = replyRecipients(target, sender.mailbox.email, body.replyAll ? 'all' : 'sender')
    const draft = draftSend(caller, { ...addressed, bcc: [] }, body)
    draft.refusal = await this.#judge(caller, sender, 'nothing', draft)
    if (draft.recipients.length === 0) draft.refusal ??= unanswerable
    const frame: SendFrame = {
      operation: 'reply',
      sender,
      thread: { id: thread.id, kind: 'known', subject: thread.subject },
      subject: replySubject(thread.subject),
      inReplyTo: target.internetMessageId,
      references: replyReferences(target),
    }
    return withMessage(await this.#once(caller, frame, draft, body, idempotency))
  }

  /** Resolves when everything taken has been answered. */
  async drained(): Promise<void> {
    await this.#batch.drained()
  }

  /**
   * Requests with one idempotency key run one after the other until one of them is accepted; those that waited for it
   * see its result, all at once.
   */
  async #once(
    caller: Caller,
    frame: SendFrame,
    draft: SendDraft,
    body: MessageBody | ReplyBody | DomainMessageBody,
    idempotency: Idempotency,
  ): Promise<AcceptedSend> {
    const name = `${caller.organizationId} ${frame.operation} ${idempotency.key}`
    let hasResult = false
    let earlier = this.#running.get(name)
    const deadlineMs = earlier ? this.#deps.clock.monotonicMs() + runningWaitMs : 0
    // Nothing may come between the last look and the entry below: of those that waited, only one goes on.
    for (; earlier && !hasResult; earlier = this.#running.get(name))
      hasResult = await this.#isAccepted(earlier, deadlineMs)
    const describe = () => ({
      'posthorn.organization': caller.organizationId,
      'posthorn.inbox': frame.sender.id ?? '',
    })
    const run = traced('accept', describe, () => this.#accept(caller, frame, draft, body, idempotency))
    if (hasResult) return await run
    this.#running.set(name, run)
    try {
      return await run
    } finally {
      this.#running.delete(name)
    }
  }

  /** Waits for it to end, until the deadline: whether it was accepted. */
  #isAccepted(earlier: Promise<AcceptedSend>, deadlineMs: number): Promise<boolean> {
    const waitMs = deadlineMs - this.#deps.clock.monotonicMs()
    if (waitMs <= 0) throw new ServiceError('idempotency_in_progress', undefined, 1)
    const isAccepted = earlier.then(
      () => true,
      () => false, // who waits is not told why: its own turn comes
    )
    return Promise.race([isAccepted, sleep(waitMs, false, { ref: false })])
  }

  async #accept(
    caller: Caller,
    frame: SendFrame,
    draft: SendDraft,
    body: MessageBody | ReplyBody | DomainMessageBody,
    idempotency: Idempotency,
  ): Promise<AcceptedSend> {
    const { clock, lifetimeMs, blobs, contents, wake } = this.#deps
    const making = contents.make(caller, frame, draft, body, idempotency.key)
    const content = making instanceof Promise ? await making : making
    const { raw } = content
    const routes = this.#routesOf(draft)
    const send = compileSend(caller, frame, draft, body, {
      idempotency,
      content,
      routes: routes instanceof Promise ? await routes : routes,
      lifetimeMs,
      at: clock.now(),
    })
    if (!draft.refusal) {
      if (raw) await this.#keepLarge(raw)
      if (!send.deliveries.every(({ route }) => this.#knownRoutes.has(route))) await this.#addRoutes(send)
    }
    const sizeBytes = 2_000 + draft.contentBytes + 300 * draft.recipients.length
    const verdict = await this.#batch.add({ send, raw, sizeBytes })
    if (verdict instanceof DbFault) throw verdict
    if (verdict.verdict === 'accepted') {
      wake(send.deliveries.map(({ route }) => route))
      this.#tell(send)
      return acceptedOf(caller, send, verdict.suppressed)
    }
    if (raw?.blob) await blobs.delete(raw.blob)
    if (verdict.verdict === 'replayed') return await this.#replay(caller, verdict.submissionId)
    throw refused(verdict, draft.refusal)
  }

  #tell({ id, sub, inbox, deliveries }: NewSend): void {
    meters.accepted.inc()
    if (!this.#deps.log.isLevelEnabled('info')) return
    const names = { message: inbox && id, submission: sub, queueId: queueIdOf(sub), inbox }
    this.#deps.log.info({ ...names, recipients: deliveries.length }, 'a send was accepted')
  }

  /** The queue of each recipient's domain. */
  #routesOf({ recipients }: SendDraft): Map<string, string> | Promise<Map<string, string>> {
    const { domains, routePolicy } = this.#deps
    const names = [...new Set(recipients.map(({ domain }) => domain))]
    const found = names.map((name) => domains.find(name))
    return upon(allOf(found), (proved) => {
      return new Map(names.map((name, i) => [name, routeOf(routePolicy, name, proved[i] ?? null)]))
    })
  }

  #judge(caller: Caller, sender: Sender, begins: 'conversation' | 'nothing', draft: SendDraft) {
    const { domains, routePolicy } = this.#deps
    const { isLocal } = routePolicy
    return judgeSender(domains, caller, sender, { begins, drafted: draft.refusal, isLocal })
  }

  /** Bytes too large for a row go to the blob store, flushed, before the commit that names them. */
  async #keepLarge(raw: RawRow): Promise<void> {
    if (!raw.bytes || raw.sizeBytes <= maxInlineBytes) return
    await this.#deps.blobs.put(raw.id, raw.bytes)
    raw.blob = raw.id
    raw.bytes = null
  }

  async #addRoutes({ deliveries }: NewSend): Promise<void> {
    const unknown = deliveries.map(({ route }) => route).filter((route) => !this.#knownRoutes.has(route))
    await addRoutes(this.#deps.db.writer, unknown, this.#deps.clock.now())
    if (this.#knownRoutes.size > maxKnown) this.#knownRoutes.clear()
    for (const route of unknown) this.#knownRoutes.add(route)
  }

  async #flush(sends: PendingSend[]): Promise<(SendVerdict | DbFault)[]> {
    const { db, clock } = this.#deps
    return await commitRows(sends, async (rows) => {
      const news = rows.map(({ send }) => send)
      const at = clock.now()
      if (!rows.some(({ raw }) => raw)) return await acceptSends(db.writer, news, at)
      return await db.transaction(async (tx) => {
        const verdicts = await acceptSends(tx, news, at)
        const raws = rows.flatMap(({ raw }, i) => (raw && verdicts[i]?.verdict === 'accepted' ? [raw] : []))
        await insertRaws(tx, raws, at)
        return verdicts
      })
    })
  }

  async #replay(caller: Caller, submissionId: SubmissionId): Promise<AcceptedSend> {
    const submission = await this.#results.add(submissionId)
    if (submission?.inboxId === null) return { message: null, submission, replayed: true }
    const message =
      submission?.messageId && (await findMessage(this.#deps.db, caller.organizationId, submission.messageId))
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
    const sender: Sender = {
      id: inbox.id,
      mailbox: { email, name: inbox.displayName },
      domain: inbox.domain,
      domainId: inbox.domainId,
    }
    if (this.#senders.size > maxKnown) this.#senders.clear()
    this.#senders.set(name, sender)
    return sender
  }
}

async function readResults(db: Db, ids: SubmissionId[]): Promise<(SubmissionRow | undefined)[]> {
  const found = new Map((await findSubmissions(db, ids)).map((row) => [row.id, row]))
  return ids.map((id) => found.get(id))
}

const unanswerable: Refusal = {
  code: 'invalid_request',
  detail: '/targetMessageId must be a message that has an address to reply to',
}

/** A send from an inbox has its message. */
function withMessage({ message, ...rest }: AcceptedSend): Accepted {
  if (!message) throw new Error('a send from an inbox came back without its message')
  return { ...rest, message }
}

function refused({ verdict, retryAfterSeconds }: SendVerdict, refusal: Refusal | null): ServiceError {
  const known = refusal?.code === verdict ? refusal : null
  return new ServiceError(
    verdict as RefusalCode,
    known?.detail,
    retryAfterSeconds ?? known?.retryAfterSeconds,
  )
}
