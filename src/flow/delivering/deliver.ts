// Delivers one message to recipients that share a next hop: composes and signs it once, then sends it to each.

import { isAscii } from 'node:buffer'
import { buffer as readBuffer } from 'node:stream/consumers'
import { queueIdOf } from '../../base/ids.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { ReplyStage } from '../../mail/bounce/reply-code.ts'
import { returnPathOf } from '../../mail/return-path.ts'
import { compose, type DraftAttachment } from '../../mail/write/compose.ts'
import { dateTime } from '../../mail/write/date-time.ts'
import { fold } from '../../mail/write/header-encode.ts'
import { signDkim } from '../../mailauth/dkim-sign.ts'
import type { SmtpConnection } from '../../smtp/client/client.ts'
import type { RecipientEnvelope, RecipientResult, SendResult } from '../../smtp/client/transaction.ts'
import type { Step } from '../../smtp/client/wire.ts'
import { findRaw } from '../../store/mailbox/raws.ts'
import type { DeliveryResult, OutboundContent } from '../../store/sending/deliveries.ts'
import type { DeliveryJob, JobDeps } from './delivery-job.ts'
import { resultOf, withhold } from './endings.ts'
import { programFields } from './program-fields.ts'
import type { SendingIdentities, SendingIdentity } from './sending-identity.ts'
import type { ShapedReply } from './shaping-rules.ts'

export interface DeliveryDeps extends JobDeps {
  blobs: Blobs
  secretBox: SecretBox
  hostname: string
  /** The public URL of the service, without a slash at the end; null if it is not known. */
  publicUrl: string | null
  identities: SendingIdentities
  retryScheduleMs: number[]
}

export interface DeliverOptions {
  /** Called before the last bytes of each message. False aborts the transaction, because the lease was lost. */
  mayFinish(): boolean
  /** Takes each recipient's result as soon as it is known. */
  record(result: DeliveryResult): void
  /** Gets each result as the server gave it. */
  heard(result: RecipientResult): void
  /** Whether a refusal is about our source address, so that another source may deliver the mail. */
  isBlock(reply: ShapedReply, stage: ReplyStage): boolean
}

/** Sends one transaction per recipient, each with its own return path. Returns the connection's fault, if any. */
export async function deliver(
  deps: DeliveryDeps,
  connection: SmtpConnection,
  job: DeliveryJob,
  { mayFinish, record, heard, isBlock }: DeliverOptions,
): Promise<SendResult> {
  const identity = await identityOf(deps, job)
  if (typeof identity === 'string') {
    for (const result of withhold(deps, job, identity)) record(result)
    return { recipients: [], fault: null, reply: null }
  }
  const { bytes, isHeaderUtf8 } = await writeMessage(deps, job, identity)
  const beginning = () => ({ beganAt: deps.clock.now(), beganMs: performance.now() })
  let begun = beginning()
  const onResult = (index: number, result: RecipientResult, steps: readonly Step[]) => {
    const isBlocked = result.outcome === 'refused' && isBlock(result.reply, result.stage)
    const attempt = { ...begun, remote: connection.remote, steps, isBlocked }
    record(resultOf(deps, job, job.deliveries[index]!, result, attempt))
    heard(result)
    begun = beginning()
  }
  const envelopes = envelopesOf(deps, job, { ...identity, isHeaderUtf8 })
  return await connection.send(envelopes, bytes, { mayFinish, onResult })
}

function identityOf({ identities }: DeliveryDeps, { content, deliveries }: DeliveryJob) {
  const domain = content.sender.email.slice(content.sender.email.lastIndexOf('@') + 1)
  return identities.of(deliveries[0]!.organizationId, domain, content.origin)
}

/**
 * Returns the bytes to send: the trace field, the DKIM signatures and the message. All input is stored, so every attempt with
 * the same keys sends the same bytes. `isHeaderUtf8`: whether the header needs SMTPUTF8.
 */
async function writeMessage(
  deps: DeliveryDeps,
  job: Pick<DeliveryJob, 'content' | 'deliveries'>,
  identity: SendingIdentity,
): Promise<{ bytes: Buffer; isHeaderUtf8: boolean }> {
  const { content } = job
  const { submissionId, createdAt, isRaw } = content
  const message = isRaw ? await readStored(deps, content) : await composeMessage(deps, job, identity)
  const isHeaderUtf8 = isRaw ? hasWideHeader(message) : hasWideAddress(content)
  const signature = await signDkim(message, identity.keys, createdAt)
  // RFC 3848 2: ESMTPSA for a client that authenticated within TLS. RFC 6531 4.3: UTF8SMTPSA with SMTPUTF8.
  const protocol = !isRaw ? 'HTTP' : isHeaderUtf8 ? 'UTF8SMTPSA' : 'ESMTPSA'
  const by = ['by', deps.hostname, '(Posthorn)', 'with', protocol, 'id', `${queueIdOf(submissionId)};`]
  const received = fold('Received', [...by, dateTime(createdAt)])
  return { bytes: Buffer.concat([Buffer.from(received), signature, message]), isHeaderUtf8 }
}

async function composeMessage(
  deps: DeliveryDeps,
  job: Pick<DeliveryJob, 'content' | 'deliveries'>,
  identity: SendingIdentity,
): Promise<Buffer> {
  const { content } = job
  const { cc = [], replyTo, to } = content.recipients
  return compose({
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
    headers: { ...content.headers, ...programFields(deps, job, identity) },
    attachments: await readAttachments(deps, content),
    seed: content.submissionId,
  })
}

/** The raw row of a composed message holds its attachments one after the other. */
async function readAttachments(
  { db, blobs }: DeliveryDeps,
  content: OutboundContent,
): Promise<DraftAttachment[]> {
  if (content.attachments.length === 0) return []
  const bytes = await readStored({ db, blobs }, content)
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

/** The bytes of the raw row. */
async function readStored(
  { db, blobs }: Pick<DeliveryDeps, 'db' | 'blobs'>,
  { submissionId, rawId, rawBytes }: OutboundContent,
): Promise<Buffer> {
  if (rawBytes) return rawBytes
  const raw = rawId ? await findRaw(db, rawId) : null
  if (!raw) throw new Error(`the bytes of ${submissionId} are not there`)
  return raw.bytes ?? (await readBuffer(blobs.read(raw.blob!)))
}

// A shared return path would let each recipient speak for the others: anyone who has a copy could bounce them.
function envelopesOf(
  { secretBox }: DeliveryDeps,
  { content, deliveries }: DeliveryJob,
  { returnPathHost, isHeaderUtf8 }: SendingIdentity & { isHeaderUtf8: boolean },
): RecipientEnvelope[] {
  const { submissionId, createdAt } = content
  return deliveries.map(({ position, email }) => ({
    from: returnPathOf(secretBox, { submissionId, position }, returnPathHost, createdAt),
    to: email,
    // RFC 6531 3.4: the transaction needs SMTPUTF8 when an address, in the envelope or in the header, is not ASCII.
    needsUtf8: isHeaderUtf8 || isUtf8(email),
  }))
}

function hasWideAddress({ sender, recipients: { to, cc = [], replyTo } }: OutboundContent): boolean {
  return [sender, ...to, ...cc, ...(replyTo ? [replyTo] : [])].some(({ email }) => isUtf8(email))
}

function hasWideHeader(message: Buffer): boolean {
  const end = message.indexOf('\r\n\r\n')
  return !isAscii(end < 0 ? message : message.subarray(0, end))
}

function isUtf8(address: string): boolean {
  return /[^\x00-\x7f]/.test(address)
}
