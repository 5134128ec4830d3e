// Received mail between its 250 reply and its filing, and mail for the service's own addresses.
import type { InboxId, MessageId, OrganizationId, SubmissionId } from '../../base/ids.ts'
import { releaseBytes } from '../../postgres/columns.ts'
import type { Queryable, Writer } from '../../postgres/db.ts'
import type { DeliveryKey } from '../sending/deliveries.ts'
import type { MailFindings } from './messages.ts'
import { packRaws, type RawRow } from './raws.ts'

/** The facts about a received message beyond its bytes. */
export interface SpoolEnvelope {
  from: string
  /** Recipients of this inbox alone, as given, with tags. */
  recipients: string[]
  helo: string
  remoteIp: string
  tls: { encrypted: boolean; protocol: string; cipher: string }
  protocol: string
  receivedBy: string
  /** Findings about the sender. Absent in mail that was received before there were checks. */
  findings?: MailFindings
}

export interface SpoolRow {
  id: MessageId
  organizationId: OrganizationId
  inboxId: InboxId
  rawId: string
  envelope: SpoolEnvelope
  receivedAt: Date
  failures: number
}

/** A mail to file. Its bytes are in the raw row, or in the blob `blob`. */
export type SpooledMail = SpoolRow & Pick<RawRow, 'sizeBytes' | 'blob'>

export interface KeptRow {
  id: string
  purpose: 'operator' | 'feedback' | 'return_path'
  /** The first of the mail's addresses. */
  address: string
  /** The network under which the sender's share is counted; null for a trusted peer, which needs no share. */
  network: string | null
  envelope: SpoolEnvelope
}

/** The bound of unread mail of a purpose. */
export interface KeptBound {
  mails: number
  bytes: number
  /**
   * A network may hold up to `share` times the mails, and the bytes, that then stay free. Its first mail only needs to fit.
   */
  share: number
}
export type KeptBounds = Record<KeptRow['purpose'], KeptBound>

/**
 * The result for a received mail. `known`: an earlier attempt of its delivery was stored. `over`: it exceeds a bound.
 * `gone`: not stored, because none of its inboxes is active, or another mail of the same delivery came earlier in the
 * batch.
 */
export type Received = 'stored' | 'known' | 'over' | 'gone'

/** One received message: its bytes once, and a row for each inbox and service address that it goes to. */
export interface ReceivedMail {
  raw: RawRow
  receivedAt: Date
  inboxes: { id: MessageId; organizationId: OrganizationId; inboxId: InboxId; envelope: SpoolEnvelope }[]
  kept: (KeptRow & { submissionId: SubmissionId | null })[]
  /** The delivery that brought the mail, if one of our own nodes sent it. Null for mail from other servers. */
  delivery: DeliveryKey | null
}

/**
 * Stores received mails together in one statement, `receive_mails`. Returns the result for each. A second run with the
 * same ids changes nothing.
 */
export async function insertReceived(
  db: Writer,
  mails: ReceivedMail[],
  bounds: KeptBounds,
  at: Date,
): Promise<Received[]> {
  const all = mails.map(({ raw, receivedAt }, i) => ({ i, raw: raw.id, size: raw.sizeBytes, at: receivedAt }))
  const inboxes = mails.flatMap((mail, i) =>
    mail.inboxes.map(({ id, organizationId, inboxId, envelope }) => ({
      ...all[i]!,
      id,
      org: organizationId,
      inbox: inboxId,
      envelope,
    })),
  )
  const kept = mails.flatMap((mail, i) =>
    mail.kept.map(({ submissionId, ...row }) => ({ ...all[i]!, ...row, submission: submissionId })),
  )
  const deliveries = mails.flatMap(({ delivery }, i) =>
    delivery ? [{ i, submission: delivery.submissionId, position: delivery.position }] : [],
  )
  const limits = Object.entries(bounds).map(([purpose, bound]) => ({ purpose, ...bound }))
  const { rows, bytes } = packRaws(mails.map(({ raw }) => raw))
  const answers = await db.query<{ i: number; verdict: Received }>(
    'select i, verdict from receive_mails($1, $2, $3, $4, $5, $6, $7)',
    [
      ...[at, JSON.stringify(inboxes), JSON.stringify(kept), JSON.stringify(limits), rows, bytes],
      JSON.stringify(deliveries),
    ],
  )
  releaseBytes([bytes])
  const verdicts = new Map(answers.map(({ i, verdict }) => [i, verdict]))
  return mails.map((_, i) => verdicts.get(i) ?? 'gone')
}

/** Reads the claimed mails, in the order in which they came or are due again. */
export async function readSpool(db: Queryable, ids: readonly string[]): Promise<SpooledMail[]> {
  return await db.query<SpooledMail>(
    `select s.id, s.organization_id as "organizationId", s.inbox_id as "inboxId", s.raw_id as "rawId", s.envelope,
      s.received_at as "receivedAt", s.failures, r.size_bytes as "sizeBytes", r.blob
    from spool s join raw r on r.id = s.raw_id where s.id = any($1) order by s.due_at, s.id`,
    [ids],
  )
}
