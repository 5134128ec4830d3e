// Delivers one message to the recipients that share a next hop: composed and signed once, sent to each, every answer kept.

import { buffer as readBuffer } from 'node:stream/consumers'
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { queueIdOf, type SubmissionId } from '../../base/ids.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { classify } from '../../mail/bounce/reply-code.ts'
import { returnPathOf } from '../../mail/return-path.ts'
import { compose, type DraftAttachment } from '../../mail/write/compose.ts'
import { dateTime } from '../../mail/write/date-time.ts'
import { signDkim } from '../../mailauth/dkim-sign.ts'
import type { Db } from '../../postgres/db.ts'
import type { SmtpConnection } from '../../smtp/client/client.ts'
import type { Envelope, RecipientResult, SendResult } from '../../smtp/client/transaction.ts'
import type { Step } from '../../smtp/client/wire.ts'
import { replyLine } from '../../smtp/reply.ts'
import { writeConversation } from '../../store/conversation.ts'
import {
  type Claim,
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryResult,
  endDeliveries,
  type OutboundContent,
  type Outcome,
  readContents,
} from '../../store/deliveries.ts'
import { findRaw } from '../../store/raws.ts'
import { retryScheduleOf } from '../route-policy.ts'
import type { SendingIdentities, SendingIdentity } from './sending-identity.ts'

export interface DeliveryDeps {
  db: Db
  clock: Clock
  blobs: Blobs
  secretBox: SecretBox
  hostname: string
  identities: SendingIdentities
  retryScheduleMs: number[]
  /** Accepted here and not claimed yet, by the submission's id; what is not there is read back. */
  atHand?: RecentlyUsed<OutboundContent> | undefined
}

/** One message for recipients of one route, claimed under one epoch. */
export interface DeliveryJob {
  route: string
  epoch: number
  content: OutboundContent
  deliveries: ClaimedDelivery[]
}

const suppression = {
  failureCode: 'suppressed',
  eventType: 'suppressed',
  classification: null,
} as const

interface Lease {
  route: string
  epoch: number
}

/**
 * Claims up to `wanted` due deliveries of the route and puts those of one message together. What was suppressed after it
 * had been accepted ends here; where that fails, or what is sent cannot be read, all that was claimed is given back: nothing
 * was tried.
 */
export async function claimJobs(
  deps: Pick<DeliveryDeps, 'db' | 'clock' | 'atHand'>,
  claim: Claim,
  record: (results: DeliveryResult[]) => void,
): Promise<DeliveryJob[]> {
  const { db, clock } = deps
  const lease = { route: claim.route, epoch: claim.epoch }
  const found = await claimDeliveries(db.writer, claim, clock.now())
  const [suppressed, wanted] = [true, false].map((is) =>
    found.filter(({ isSuppressed }) => isSuppressed === is),
  )
  const bySubmission = Map.groupBy(wanted!, ({ submissionId }) => submissionId)
  try {
    const contents = await findContents(deps, [...bySubmission.keys()])
    await endDeliveries(db.writer, suppressed!, { ...suppression, epoch: lease.epoch }, clock.now())
    return [...bySubmission].flatMap(([id, deliveries]) => {
      const content = contents.get(id)
      deliveries.sort((a, b) => a.position - b.position)
      return content ? [{ ...lease, content, deliveries }] : []
    })
  } catch (error) {
    record(found.map((delivery) => ({ ...claimKeyOf(lease, delivery), ...giveBack })))
    throw error
  }
}

/** Each is at hand for its first claim, which most often is its only one. */
async function findContents(
  { db, atHand }: Pick<DeliveryDeps, 'db' | 'atHand'>,
  ids: SubmissionId[],
): Promise<Map<SubmissionId, OutboundContent>> {
  const here = ids.map((id) => atHand?.use(id)).filter((content) => content !== undefined)
  const contents = new Map(here.map((content) => [content.submissionId, content]))
  for (const id of contents.keys()) atHand?.delete(id)
  const lacking = ids.filter((id) => !contents.has(id))
  const read = lacking.length > 0 ? await readContents(db, lacking) : []
  for (const content of read) contents.set(content.submissionId, content)
  return contents
}

export interface DeliverOptions {
  /** Asked before each message is finished: a lost lease breaks it off. */
  mayFinish(): boolean
  /** Takes each recipient's result as soon as it is known. */
  record(result: DeliveryResult): void
}

/**
 * One transaction a recipient, each with its own return path, over one connection; returns what went wrong with the
 * connection, if anything.
 */
export async function deliver(
  deps: DeliveryDeps,
  connection: SmtpConnection,
  job: DeliveryJob,
  { mayFinish, record }: DeliverOptions,
): Promise<Pick<SendResult, 'fault' | 'reply'>> {
  const identity = await identityOf(deps, job)
  if (typeof identity === 'string') {
    for (const result of withhold(deps, job, identity)) record(result)
    return { fault: null, reply: null }
  }
  const message = await writeMessage(deps, job, identity)
  const beginning = () => ({ beganAt: deps.clock.now(), beganMs: performance.now() })
  let begun = beginning()
  const onResult = (index: number, result: RecipientResult, said: readonly Step[]) => {
    const attempt = { ...begun, remote: connection.remote, said }
    record(resultOf(deps, job, job.deliveries[index]!, result, attempt))
    begun = beginning()
  }
  return await connection.send(envelopesOf(deps, job, identity), message, { mayFinish, onResult })
}

/** Gives the claims back: nothing was tried. */
export function untried(job: DeliveryJob): DeliveryResult[] {
  return job.deliveries.map((delivery) => ({ ...claimKeyOf(job, delivery), ...giveBack }))
}

const maxOwnFaults = 5
const notWritten = 'this service could not write the message, by a fault of its own'

/**
 * The message could not even be written, by a fault of ours: it waits by the schedule, and has failed after a few such
 * attempts. One whose `cause` passes is none of these.
 */
export function unwritten(
  deps: DeliveryDeps,
  job: DeliveryJob,
  cause: 'lasting' | 'passing',
): DeliveryResult[] {
  const at = deps.clock.now()
  return job.deliveries.map((delivery) => {
    const ownFaults = delivery.ownFaults + (cause === 'lasting' ? 1 : 0)
    const end =
      ownFaults >= maxOwnFaults
        ? { status: 'failed' as const, dueAt: null, failureCode: 'internal_error' }
        : {
            status: 'deferred' as const,
            dueAt: nextAttempt(deps.retryScheduleMs, delivery, at),
            failureCode: null,
          }
    const facts = { type: end.status, at, attempt: delivery.attempts, classification: 'other' }
    const outcome = { ...unspoken, ...facts, queuedAt: firstTaken(delivery) }
    return { ...claimKeyOf(job, delivery), ...end, response: notWritten, ownFaults, outcome }
  })
}

function identityOf({ identities }: DeliveryDeps, { content, deliveries }: DeliveryJob) {
  const domain = content.sender.email.slice(content.sender.email.lastIndexOf('@') + 1)
  return identities.of(deliveries[0]!.organizationId, domain, content.origin)
}

/** Trace, signature and message: the same bytes at every attempt with the same keys, for all is made of what is stored. */
async function writeMessage(
  deps: DeliveryDeps,
  { content }: DeliveryJob,
  { keys }: SendingIdentity,
): Promise<Buffer> {
  const { cc = [], replyTo, to } = content.recipients
  const composed = compose({
    from: content.sender,
    to,
    cc,
    replyTo: replyTo ?? null,
    subject: content.subject,
    text: content.text,
    html: content.html,
    messageId: content.messageId,
    inReplyTo: content.inReplyTo,
    references: content.referenceIds,
    date: content.createdAt,
    headers: content.headers,
    attachments: await readAttachments(deps, content),
    seed: content.submissionId,
  })
  const signature = await signDkim(composed, keys, content.createdAt)
  const received = `Received: by ${deps.hostname} (Posthorn) with HTTP id ${queueIdOf(content.submissionId)};\r\n ${dateTime(content.createdAt)}\r\n`
  return Buffer.concat([Buffer.from(received), signature, composed])
}

/** Outbound attachments stand one after the other in the message's raw row. */
async function readAttachments(
  { db, blobs }: DeliveryDeps,
  content: OutboundContent,
): Promise<DraftAttachment[]> {
  if (content.attachments.length === 0) return []
  const bytes = content.attachedBytes ?? (await readAttached({ db, blobs }, content))
  let offset = 0
  return content.attachments.map(({ filename, contentType, contentId, disposition, size }) => {
    const attachment = {
      filename,
      contentType,
      contentId,
      disposition,
      content: bytes.subarray(offset, offset + size),
    }
    offset += size
    return attachment
  })
}

async function readAttached(
  { db, blobs }: Pick<DeliveryDeps, 'db' | 'blobs'>,
  { submissionId, rawId }: OutboundContent,
): Promise<Buffer> {
  const raw = rawId ? await findRaw(db, rawId) : null
  if (!raw) throw new Error(`the attachments of ${submissionId} are not there`)
  return raw.bytes ?? (await readBuffer(blobs.read(raw.blob!)))
}

// A shared return path would let each recipient speak for the others: whoever has got a copy could bounce them.
function envelopesOf(
  { secretBox }: DeliveryDeps,
  { content, deliveries }: DeliveryJob,
  { returnPathHost }: SendingIdentity,
): Envelope[] {
  const { submissionId, createdAt, sender, recipients } = content
  const { to, cc = [], replyTo } = recipients
  const visible = [sender, ...to, ...cc, ...(replyTo ? [replyTo] : [])]
  const isHeaderUtf8 = visible.some(({ email }) => isUtf8(email))
  return deliveries.map(({ position, email }) => ({
    from: returnPathOf(secretBox, { submissionId, position }, returnPathHost, createdAt),
    to: email,
    // RFC 6531 3.4: the transaction needs SMTPUTF8 when an address, in the envelope or in the header, is not ASCII.
    utf8: isHeaderUtf8 || isUtf8(email),
  }))
}

function isUtf8(address: string): boolean {
  return /[^\x00-\x7f]/.test(address)
}

interface Attempt {
  beganAt: Date
  /** The same moment on the monotonic clock. */
  beganMs: number
  remote: Outcome['remote']
  said: readonly Step[]
}

/**
 * What may not go out: of a domain that is not proved for sending at the moment it waits, as after a refusal for a while;
 * of a domain that was deleted it is cancelled, as what waited was when that happened.
 */
function withhold(deps: DeliveryDeps, job: DeliveryJob, reason: 'unproved' | 'gone'): DeliveryResult[] {
  const at = deps.clock.now()
  return job.deliveries.map((delivery) => {
    const kind =
      reason === 'gone'
        ? { type: 'cancelled', classification: null }
        : { type: 'deferred', classification: 'policy' }
    const outcome = { ...unspoken, ...kind, at, queuedAt: firstTaken(delivery) }
    const end =
      reason === 'gone'
        ? { status: 'failed' as const, dueAt: null, failureCode: 'cancelled' }
        : {
            status: 'deferred' as const,
            dueAt: nextAttempt(deps.retryScheduleMs, delivery, at),
            failureCode: null,
          }
    return { ...claimKeyOf(job, delivery), ...end, response: null, outcome }
  })
}

const giveBack = { status: null, dueAt: null, response: null, failureCode: null, outcome: null }
/** Of an outcome that nobody was spoken to for. */
const unspoken = { attempt: null, remote: null, enhancedStatus: null, beganAt: null, conversation: null }

function claimKeyOf({ route, epoch }: Lease, { submissionId, position }: ClaimedDelivery) {
  return { submissionId, position, route, epoch }
}

function resultOf(
  deps: DeliveryDeps,
  job: DeliveryJob,
  delivery: ClaimedDelivery,
  result: RecipientResult,
  attempt: Attempt,
): DeliveryResult {
  const claimKey = claimKeyOf(job, delivery)
  if (result.outcome === 'untried' || result.outcome === 'abandoned') return { ...claimKey, ...giveBack }
  const at = deps.clock.now()
  const { beganAt, beganMs, remote, said } = attempt
  const tried = {
    at,
    beganAt,
    attempt: delivery.attempts,
    remote,
    queuedAt: firstTaken(delivery),
    conversation: writeConversation(said, beganMs),
  }
  const dueAt = nextAttempt(retryScheduleOf(job.route, deps.retryScheduleMs), delivery, at)
  const deferral = { status: 'deferred' as const, dueAt, failureCode: null }
  if (result.outcome === 'unknown') {
    // Lost between the end of the message and its reply: it may have been taken, and is tried again all the same.
    const outcome = { ...tried, type: 'deferred', enhancedStatus: null, classification: 'network' }
    return { ...claimKey, ...deferral, response: null, outcome }
  }
  const response = replyLine(result.reply)
  const answered = {
    ...tried,
    remote: remote && { ...remote, stage: result.stage },
    enhancedStatus: result.reply.enhanced,
  }
  if (result.outcome === 'delivered') {
    const outcome = { ...answered, type: 'delivered', classification: null }
    return { ...claimKey, status: 'delivered', dueAt: null, response, failureCode: null, outcome }
  }
  const { permanent, classification, failureCode, suppresses } = classify(result.reply, result.stage)
  const outcome = { ...answered, type: permanent ? 'bounced' : 'deferred', classification }
  if (!permanent) return { ...claimKey, ...deferral, response, outcome }
  return { ...claimKey, status: 'bounced', dueAt: null, response, failureCode, suppresses, outcome }
}

/** When the engine has taken the delivery, where that was the first time. */
function firstTaken({ attempts, queuedAt }: ClaimedDelivery): Date | null {
  return attempts > 1 ? null : queuedAt
}

/** By the schedule, but never past the end of the lifetime, when it is given up. */
function nextAttempt(
  scheduleMs: readonly number[],
  { attempts, expiresAt }: ClaimedDelivery,
  at: Date,
): Date {
  return new Date(Math.min(at.getTime() + backoffMs(scheduleMs, attempts), expiresAt.getTime()))
}
