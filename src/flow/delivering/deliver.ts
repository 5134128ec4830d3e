// Delivers one message to the recipients that share a next hop: composed and signed once, sent to each, every answer kept.

import { buffer as readBuffer } from 'node:stream/consumers'
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { queueIdOf } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { DiskBlobs } from '../../blobs/disk.ts'
import { classify } from '../../mail/bounce/reply-code.ts'
import { returnPathOf } from '../../mail/return-path.ts'
import { compose, type DraftAttachment } from '../../mail/write/compose.ts'
import { dateTime } from '../../mail/write/date-time.ts'
import { signDkim } from '../../mailauth/dkim-sign.ts'
import type { Db } from '../../postgres/db.ts'
import type { SmtpConnection } from '../../smtp/client/client.ts'
import type { Envelope, RecipientResult, SendResult } from '../../smtp/client/transaction.ts'
import { replyLine } from '../../smtp/reply.ts'
import {
  type Claim,
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryFact,
  type DeliveryResult,
  type OutboundContent,
} from '../../store/deliveries.ts'
import { findRaw } from '../../store/raws.ts'
import { suppressDeliveries } from '../../store/suppressions.ts'
import type { SendingIdentities, SendingIdentity } from './sending-identity.ts'

export interface DeliveryDeps {
  db: Db
  clock: Clock
  blobs: DiskBlobs
  secretBox: SecretBox
  hostname: string
  identities: SendingIdentities
  retryScheduleMs: number[]
}

/** One message for recipients of one route, claimed under one epoch. */
export interface DeliveryJob {
  route: string
  epoch: number
  content: OutboundContent
  deliveries: ClaimedDelivery[]
}

interface Lease {
  route: string
  epoch: number
}

/**
 * Claims up to `wanted` due deliveries of the route and puts those of one message together. What was suppressed after it
 * had been accepted ends here; where that fails, all that was claimed is given back: nothing was tried.
 */
export async function claimJobs(
  { db, clock }: Pick<DeliveryDeps, 'db' | 'clock'>,
  claim: Claim,
  record: (results: DeliveryResult[]) => void,
): Promise<DeliveryJob[]> {
  const lease = { route: claim.route, epoch: claim.epoch }
  const found = await claimDeliveries(db, claim, clock.now())
  try {
    const suppressed = found.filter(({ isSuppressed }) => isSuppressed)
    await suppressDeliveries(db.writer, suppressed, lease.epoch, clock.now())
  } catch (error) {
    record(found.map((delivery) => ({ ...claimKeyOf(lease, delivery), ...giveBack })))
    throw error
  }
  const bySubmission = Map.groupBy(found, ({ submissionId }) => submissionId)
  return [...bySubmission.values()].flatMap((claimed) => {
    const content = claimed.find((delivery) => delivery.content)?.content
    const deliveries = claimed.filter(({ isSuppressed }) => !isSuppressed)
    deliveries.sort((a, b) => a.position - b.position)
    return content && deliveries.length > 0 ? [{ ...lease, content, deliveries }] : []
  })
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
  let startedAt = deps.clock.now()
  const onResult = (index: number, result: RecipientResult) => {
    const attempt = { startedAt, remote: connection.remote }
    record(resultOf(deps, job, job.deliveries[index]!, result, attempt))
    startedAt = deps.clock.now()
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
        : { status: 'deferred' as const, dueAt: nextAttempt(deps, delivery, at), failureCode: null }
    const common = {
      recipient: delivery.email,
      at,
      attempt: delivery.attempts,
      remote: null,
      enhancedStatus: null,
    }
    const fact = { ...common, type: end.status, response: notWritten, classification: 'other' }
    const facts = [...firstTaken(delivery), fact]
    return { ...claimKeyOf(job, delivery), ...end, response: notWritten, ownFaults, facts }
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
  const raw = content.rawId ? await findRaw(db, content.rawId) : null
  if (!raw) throw new Error(`the attachments of ${content.submissionId} are not there`)
  const bytes = raw.bytes ?? (await readBuffer(blobs.read(raw.blob!)))
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
  startedAt: Date
  remote: DeliveryFact['remote']
}

/**
 * What may not go out: of a domain that is not proved for sending at the moment it waits, as after a refusal for a while;
 * of a domain that was deleted it is cancelled, as what waited was when that happened.
 */
function withhold(deps: DeliveryDeps, job: DeliveryJob, reason: 'unproved' | 'gone'): DeliveryResult[] {
  const at = deps.clock.now()
  return job.deliveries.map((delivery) => {
    const fact = {
      ...{ recipient: delivery.email, at, attempt: null, remote: null, response: null, enhancedStatus: null },
      ...(reason === 'gone'
        ? { type: 'cancelled', classification: null }
        : { type: 'deferred', classification: 'policy' }),
    }
    const end =
      reason === 'gone'
        ? { status: 'failed' as const, dueAt: null, failureCode: 'cancelled' }
        : { status: 'deferred' as const, dueAt: nextAttempt(deps, delivery, at), failureCode: null }
    return { ...claimKeyOf(job, delivery), ...end, response: null, facts: [...firstTaken(delivery), fact] }
  })
}

const giveBack = { status: null, dueAt: null, response: null, failureCode: null, facts: [] }

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
  const common = {
    recipient: delivery.email,
    attempt: delivery.attempts,
    remote: attempt.remote,
    response: null,
    enhancedStatus: null,
  }
  const begun: DeliveryFact[] = [
    ...firstTaken(delivery),
    { ...common, type: 'attempted', at: attempt.startedAt, classification: null },
  ]
  const deferral = { status: 'deferred' as const, dueAt: nextAttempt(deps, delivery, at), failureCode: null }
  if (result.outcome === 'unknown') {
    // Lost between the end of the message and its reply: it may have been taken, and is tried again all the same.
    const fact = { ...common, type: 'deferred', at, classification: 'network' }
    return { ...claimKey, ...deferral, response: null, facts: [...begun, fact] }
  }
  const response = replyLine(result.reply)
  const remote = attempt.remote && { ...attempt.remote, stage: result.stage }
  const answered = { ...common, at, remote, response, enhancedStatus: result.reply.enhanced }
  if (result.outcome === 'delivered') {
    const facts = [...begun, { ...answered, type: 'delivered', classification: null }]
    return { ...claimKey, status: 'delivered', dueAt: null, response, failureCode: null, facts }
  }
  const { permanent, classification, failureCode, suppresses } = classify(result.reply, result.stage)
  if (!permanent) {
    const facts = [...begun, { ...answered, type: 'deferred', classification }]
    return { ...claimKey, ...deferral, response, facts }
  }
  const facts = [...begun, { ...answered, type: 'bounced', classification }]
  return { ...claimKey, status: 'bounced', dueAt: null, response, failureCode, suppresses, facts }
}

/** The event of a delivery that the engine has taken for the first time. */
function firstTaken({ attempts, email, queuedAt }: ClaimedDelivery): DeliveryFact[] {
  if (attempts > 1) return []
  const nothing = { attempt: null, remote: null, response: null, enhancedStatus: null, classification: null }
  return [{ ...nothing, type: 'queued', recipient: email, at: queuedAt }]
}

/** By the schedule, but never past the end of the lifetime, when it is given up. */
function nextAttempt(
  { retryScheduleMs }: DeliveryDeps,
  { attempts, expiresAt }: ClaimedDelivery,
  at: Date,
): Date {
  return new Date(Math.min(at.getTime() + backoffMs(retryScheduleMs, attempts), expiresAt.getTime()))
}
