// The idempotency key of a mail that a client wrote: its Message-ID, sender and recipients, per API key and day.
import { sha256 } from '../../base/digest.ts'
import { uuidTimeMs } from '../../base/ids.ts'
import { readEmail } from '../../mail/address.ts'
import { type EarlierSend, idempotencyDigest } from '../../store/sending/sends.ts'
import type { SendingCaller } from '../caller.ts'
import type { Idempotency } from '../idempotency.ts'
import type { WrittenMail } from './written-mail.ts'

const dayMs = 86_400_000

/**
 * Returns the key of this mail. If the same mail was accepted less than 24 hours ago, returns the earlier key, so that the
 * send is a replay. A client may send one Message-ID to each recipient in a transaction of its own, as mailing lists do, so
 * the recipients are part of the key. The hash is over what people see: a client that tries again may write another Date.
 */
export async function writtenIdempotency(
  { find, atMs }: { find(digest: Buffer): Promise<EarlierSend | null>; atMs: number },
  { id, organizationId }: Pick<SendingCaller, 'id' | 'organizationId'>,
  { from, envelope, subject, body, tlsWish }: WrittenMail,
): Promise<Idempotency> {
  const recipients = envelope.map(({ email }) => readEmail(email)?.key).sort()
  const named = sha256(JSON.stringify([body.messageId, readEmail(from.email)?.key, recipients])).toString(
    'hex',
  )
  const day = Math.floor(atMs / dayMs)
  const keyOn = (date: number) => `${id} ${named} ${date}`
  const digests = body.entries.map(({ sha256: digest }) => digest)
  // RFC 8689 2: the promise for a repeated mail with REQUIRETLS must not be that for the first one without it.
  const seen = [subject, body.text, body.html, digests, ...(tlsWish === null ? [] : [tlsWish])]
  const requestHash = sha256(JSON.stringify(seen))
  const yesterdays = await find(idempotencyDigest(organizationId, 'submission', keyOn(day - 1)))
  const isRecent = yesterdays !== null && atMs - (uuidTimeMs(yesterdays.submissionId) ?? 0) < dayMs
  return { key: keyOn(isRecent ? day - 1 : day), requestHash }
}
