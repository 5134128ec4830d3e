// Accepts sends: message, submission, recipients, idempotency record and usage commit together before the answer.
import { Batch } from '../../base/batch.ts'
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Clock } from '../../base/clock.ts'
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import { type InboxId, newId, queueIdOf, type SubmissionId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { traced } from '../../base/trace.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import { findMessage, findThread, type MessageRow } from '../../store/mailbox/messages.ts'
import { maxInlineBytes, type RawRow } from '../../store/mailbox/raws.ts'
import { insertRoutes } from '../../store/sending/routes.ts'
import {
  acceptSends,
  type EarlierSend,
  findEarlierSends,
  idempotencyDigest,
  type NewSend,
  type SendVerdict,
} from '../../store/sending/sends.ts'
import { findSubmissions, type SendOperation, type SubmissionRow } from '../../store/sending/submissions.ts'
import type { SendingCaller } from '../caller.ts'
import { deleteUnnamed } from '../delete-blobs.ts'
import type { Idempotency } from '../idempotency.ts'
import type { ProvedDomains } from '../proved-domains.ts'
import { type RoutePolicy, routeFor, routeOf } from '../route-policy.ts'
import { usualPurpose } from '../source-pools.ts'
import { compileSend } from './compile-send.ts'
import { requireKnownRecipients } from './known-recipients.ts'
import { replyRecipients, replyReferences, replySubject } from './reply-draft.ts'
import { RunningSends } from './running-sends.ts'
import { commitCached, type SendCache } from './send-cache.ts'
import type { SendContents } from './send-contents.ts'
import {
  addressTo,
  canonical,
  contentBytes,
  type DomainMessageBody,
  type MessageBody,
  type ReplyBody,
  type SendBody,
  type SendDraft,
} from './send-draft.ts'
import { requireSendable, requireSendingKey } from './send-policy.ts'
import { refuseSend } from './send-refusal.ts'
import { Senders } from './senders.ts'
import { isReplayed, type WrittenIdempotency, writtenIdempotency } from './written-idempotency.ts'
import { draftWritten, type WritingCaller, type WrittenMail } from './written-mail.ts'

/** The answer to an accepted send, new or replayed. */
export interface Accepted {
  message: MessageRow
  submission: SubmissionRow
  replayed: boolean
}

/** The answer to any accepted send. `message` is null if it was sent without an inbox. */
export interface AcceptedSend {
  message: MessageRow | null
  submission: SubmissionRow
  replayed: boolean
}

export interface AcceptanceDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: Blobs
  domains: ProvedDomains
  routePolicy: RoutePolicy
  lifetimeMs: number
  contents: SendContents
  sendCache?: SendCache
  /** Called when these routes have work, and the inbox has a new message. */
  accepted(send: { routes: string[]; inboxId: InboxId | null }): void
}

/** A caller's request. `draft` is called only if there is no earlier result. It throws if the inbox or thread is missing. */
interface SendRequest {
  operation: SendOperation
  /** The inbox in the path. Null for `POST /v1/send` and for replies. */
  inboxId: string | null
  idempotency: Idempotency | WrittenIdempotency
  body: SendBody
  draft(): Promise<SendDraft>
}

/** A send that waits for the commit of its batch. */
interface PendingSend {
  send: NewSend
  /** The bytes of its attachments, or of the whole message. */
  raw: RawRow | null
  sizeBytes: number
}

const maxKnown = 50_000

/** Accepts sends in batches, exactly once for each idempotency key. */
export class Acceptance {
  readonly #deps: AcceptanceDeps
  readonly #batch: Batch<PendingSend, SendVerdict | DbFault>
  readonly #earlier: Batch<Buffer, EarlierSend | null>
  readonly #results: Batch<SubmissionId, SubmissionRow | undefined>
  readonly #running: RunningSends
  readonly #knownRoutes = new BoundedMap<string, true>(maxKnown)
  readonly #senders: Senders

  constructor(deps: AcceptanceDeps) {
    this.#deps = deps
    this.#running = new RunningSends(deps.clock)
    this.#senders = new Senders(deps)
    this.#batch = new Batch({
      name: 'accept',
      flush: (sends) => this.#flush(sends),
      sizeOf: ({ sizeBytes }) => sizeBytes,
    })
    this.#earlier = new Batch({ name: 'earlier', flush: (digests) => findEarlierSends(deps.db, digests) })
    this.#results = new Batch({ name: 'replay', flush: (ids) => this.#readResults(ids) })
  }

  /** Accepts a new message from an inbox. Resolves after the commit. */
  async acceptMessage(
    caller: SendingCaller,
    inboxId: string,
    body: MessageBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    requireSendingKey(caller, 'message', inboxId)
    const draft = async (): Promise<SendDraft> => ({
      operation: 'message',
      sender: await this.#senders.find(caller, inboxId),
      ...addressTo(body),
      thread: { id: newId('thread', this.#deps.clock.nowMs()), isNew: true, subject: body.subject },
      subject: body.subject,
      ...(body.replyTo && { replyTo: canonical(body.replyTo).mailbox }),
      inReplyTo: null,
      references: [],
    })
    return withMessage(await this.#once(caller, { operation: 'message', inboxId, idempotency, body, draft }))
  }

  /** Accepts a message through a domain, without an inbox. Resolves after the commit. */
  async acceptFromDomain(
    caller: SendingCaller,
    body: DomainMessageBody,
    idempotency: Idempotency,
  ): Promise<AcceptedSend> {
    requireSendingKey(caller, 'send', null)
    const draft = async (): Promise<SendDraft> => {
      const { mailbox, domain } = canonical(body.from)
      const proved = await this.#deps.domains.findSending(caller.organizationId, domain)
      return {
        operation: 'send',
        sender: { id: null, mailbox, domain, domainId: proved?.id ?? null },
        ...addressTo(body),
        thread: null,
        subject: body.subject,
        ...(body.replyTo && { replyTo: canonical(body.replyTo).mailbox }),
        inReplyTo: null,
        references: [],
      }
    }
    return await this.#once(caller, { operation: 'send', inboxId: null, idempotency, body, draft })
  }

  /** Accepts a mail that a client wrote, once in 24 hours for each Message-ID. Resolves after the commit. */
  async acceptWritten(caller: WritingCaller, mail: WrittenMail): Promise<AcceptedSend> {
    const draft = () => draftWritten({ ...this.#deps, senders: this.#senders }, caller, mail)
    const idempotency = writtenIdempotency(caller, mail, this.#deps.clock.nowMs())
    const { body } = mail
    return await this.#once(caller, { operation: 'submission', inboxId: null, idempotency, body, draft })
  }

  /** Accepts a reply within a thread. Resolves after the commit. */
  async acceptReply(
    caller: SendingCaller,
    threadId: string,
    body: ReplyBody,
    idempotency: Idempotency,
  ): Promise<Accepted> {
    await this.#requireReplyingKey(caller, threadId, idempotency)
    const draft = () => this.#draftReply(caller, threadId, body)
    return withMessage(
      await this.#once(caller, { operation: 'reply', inboxId: null, idempotency, body, draft }),
    )
  }

  /**
   * Requires a key that may send from the thread's inbox. If the thread was deleted, an earlier reply with the same
   * idempotency key must be from one of the key's inboxes.
   */
  async #requireReplyingKey(caller: SendingCaller, threadId: string, { key }: Idempotency): Promise<void> {
    if (!caller.inboxIds) return
    const thread = await findThread(this.#deps.db, caller.organizationId, threadId)
    if (thread) return requireSendingKey(caller, 'reply', thread.inboxId)
    const earlier = await this.#earlier.add(idempotencyDigest(caller.organizationId, 'reply', key))
    if (!earlier?.inboxId || !caller.inboxIds.includes(earlier.inboxId)) throw noThread()
  }

  async #draftReply(caller: SendingCaller, threadId: string, body: ReplyBody): Promise<SendDraft> {
    const { db } = this.#deps
    const thread = await findThread(db, caller.organizationId, threadId)
    const target = thread && (await findMessage(db, caller.organizationId, body.targetMessageId))
    if (!thread) throw noThread()
    if (target?.threadId !== thread.id)
      throw new ServiceError('not_found', 'There is no such message in this thread.')
    const sender = await this.#senders.find(caller, thread.inboxId)
    return {
      operation: 'reply',
      sender,
      ...addressTo(replyRecipients(target, sender.mailbox.email, body.replyAll ? 'all' : 'sender')),
      thread: { id: thread.id, isNew: false, subject: thread.subject },
      subject: replySubject(thread.subject),
      inReplyTo: target.internetMessageId,
      references: replyReferences(target),
    }
  }

  /** Resolves when every running send has been answered. */
  async drained(): Promise<void> {
    await this.#running.drained()
  }

  async #once(caller: SendingCaller, request: SendRequest): Promise<AcceptedSend> {
    const { organizationId } = caller
    const { operation, inboxId, idempotency } = request
    const describe = () => ({
      'posthorn.organization': organizationId,
      'posthorn.inbox': inboxId ?? undefined,
    })
    return await this.#running.run(`${organizationId} ${operation} ${idempotency.key}`, () =>
      traced('accept', describe, () => this.#accept(caller, request)),
    )
  }

  /** Looks for an earlier result first. A repeated request gets that result, even if the send would be refused now. */
  async #accept(caller: SendingCaller, request: SendRequest): Promise<AcceptedSend> {
    const { operation, idempotency, body } = request
    const digestOf = (key: string) => idempotencyDigest(caller.organizationId, operation, key)
    const digest = digestOf(idempotency.key)
    const earlier = await this.#findEarlier(
      digest,
      'formerKey' in idempotency ? digestOf(idempotency.formerKey) : null,
    )
    if (earlier) return await this.#replay(caller, earlier, idempotency)
    const draft = await request.draft()
    await this.#requireSendable(caller, draft, body)
    await requireKnownRecipients(this.#deps.db, caller, draft)
    const { clock, lifetimeMs, contents } = this.#deps
    const content = await contents.make(caller, draft, body)
    if (content.raw) await this.#keepLarge(content.raw)
    const routes = await this.#routesOf(caller, draft, body)
    const at = clock.now()
    const circumstances = { idempotency: { ...idempotency, digest }, content, routes, lifetimeMs, at }
    const send = compileSend(caller, draft, body, circumstances)
    const sizeBytes =
      2_000 + contentBytes(body) + Buffer.byteLength(content.text) + 300 * draft.recipients.length
    return await this.#commit(caller, { send, raw: content.raw, sizeBytes })
  }

  async #findEarlier(digest: Buffer, formerDigest: Buffer | null): Promise<EarlierSend | null> {
    const [earlier, former] = await Promise.all([
      this.#earlier.add(digest),
      formerDigest && this.#earlier.add(formerDigest),
    ])
    if (earlier) return earlier
    return former && isReplayed(former, this.#deps.clock.nowMs()) ? former : null
  }

  /** If the send is refused, reads the inbox anew. If it was deleted meanwhile, throws `not_found` instead. */
  async #requireSendable(caller: SendingCaller, draft: SendDraft, body: SendBody): Promise<void> {
    const { domains, routePolicy } = this.#deps
    try {
      await requireSendable({ domains, isLocal: routePolicy.isLocal }, caller, draft, body)
    } catch (refusal) {
      if (draft.sender.id) await this.#senders.find(caller, draft.sender.id, this.#deps.clock.monotonicMs())
      throw refusal
    }
  }

  async #commit(caller: SendingCaller, pending: PendingSend): Promise<AcceptedSend> {
    const { send, raw } = pending
    const { submission, message, deliveries } = send
    const routes = deliveries.map(({ route }) => route)
    await this.#addRoutes(routes)
    const verdict = await commitCached(this.#deps.sendCache, pending, () => this.#batch.add(pending))
    if (verdict instanceof DbFault) throw verdict
    if (verdict.verdict === 'accepted') {
      for (const ordinal of verdict.suppressed)
        Object.assign(submission.recipients[ordinal]!, { status: 'suppressed', failureCode: 'suppressed' })
      this.#deps.accepted({ routes, inboxId: submission.inboxId })
      this.#logAccepted(submission)
      return { message, submission, replayed: false }
    }
    if (raw?.blob) await deleteUnnamed(this.#deps, raw.blob)
    // Another node has committed a send with the same idempotency key meanwhile.
    if (verdict.verdict === 'replayed') return await this.#resultOf(caller, verdict.submissionId)
    throw refuseSend(caller, send, { ...verdict, code: verdict.verdict as RefusalCode })
  }

  #logAccepted({ id, inboxId, messageId, recipients }: SubmissionRow): void {
    meters.accepted.inc()
    if (!this.#deps.log.isLevelEnabled('info')) return
    const names = { message: messageId, submission: id, queueId: queueIdOf(id), inbox: inboxId }
    this.#deps.log.info({ ...names, recipients: recipients.length }, 'send accepted')
  }

  /** Returns the route of each recipient's domain. */
  async #routesOf(
    { organizationId }: SendingCaller,
    { recipients, tlsWish = null }: SendDraft,
    { purpose = usualPurpose }: SendBody,
  ): Promise<Map<string, string>> {
    const { domains, routePolicy } = this.#deps
    const pool = routePolicy.choosePool(organizationId, purpose)
    const names = [...new Set(recipients.map(({ domain }) => domain))]
    const proved = await Promise.all(names.map((name) => domains.find(name)))
    const routeTo = (name: string, i: number) => routeOf(routePolicy, name, proved[i] ?? null)
    return new Map(names.map((name, i) => [name, routeFor(routeTo(name, i), tlsWish, pool)]))
  }

  /** Writes attachments too large for a row to the blob store. They are flushed to disk before the commit that names them. */
  async #keepLarge(raw: RawRow): Promise<void> {
    if (!raw.bytes || raw.sizeBytes <= maxInlineBytes) return
    await this.#deps.blobs.put(raw.id, raw.bytes)
    raw.blob = raw.id
    raw.bytes = null
  }

  async #addRoutes(routes: string[]): Promise<void> {
    const unknown = routes.filter((route) => !this.#knownRoutes.has(route))
    if (unknown.length === 0) return
    await insertRoutes(this.#deps.db.writer, unknown, this.#deps.clock.now())
    for (const route of unknown) this.#knownRoutes.set(route, true)
  }

  async #flush(sends: PendingSend[]): Promise<(SendVerdict | DbFault)[]> {
    const { db, clock } = this.#deps
    return await commitRows(sends, async (rows) => {
      const raws = rows.flatMap(({ raw }) => raw ?? [])
      return await acceptSends(
        db.writer,
        rows.map(({ send }) => send),
        raws,
        clock.now(),
      )
    })
  }

  async #replay(
    caller: SendingCaller,
    earlier: EarlierSend,
    { requestHash }: Idempotency,
  ): Promise<AcceptedSend> {
    if (earlier.isDeleted) throw new ServiceError('idempotency_result_expired')
    if (!earlier.requestHash.equals(requestHash)) throw new ServiceError('idempotency_key_reused')
    return await this.#resultOf(caller, earlier.submissionId)
  }

  async #readResults(ids: SubmissionId[]): Promise<(SubmissionRow | undefined)[]> {
    // A primary that has crashed and is back shows commits that its synchronous standby may lack.
    await this.#deps.db.confirm()
    return await readResults(this.#deps.db, ids)
  }

  async #resultOf(caller: SendingCaller, submissionId: SubmissionId): Promise<AcceptedSend> {
    const submission = await this.#results.add(submissionId)
    if (submission?.inboxId === null) return { message: null, submission, replayed: true }
    const message =
      submission?.messageId && (await findMessage(this.#deps.db, caller.organizationId, submission.messageId))
    if (!submission || !message) throw new ServiceError('idempotency_result_expired')
    return { message, submission, replayed: true }
  }
}

async function readResults(db: Db, ids: SubmissionId[]): Promise<(SubmissionRow | undefined)[]> {
  const found = new Map((await findSubmissions(db, ids)).map((row) => [row.id, row]))
  return ids.map((id) => found.get(id))
}

function noThread(): ServiceError {
  return new ServiceError('not_found', 'There is no such thread.')
}

/** A send from an inbox always has a message. */
function withMessage({ message, ...rest }: AcceptedSend): Accepted {
  if (!message) throw new Error('a send from an inbox came back without its message')
  return { ...rest, message }
}
