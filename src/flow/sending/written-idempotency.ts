// The idempotency key of a mail that a client wrote: its Message-ID, sender and recipients, per API key and day.
import { sha256 } from '../../base/digest.ts'
import { uuidTimeMs } from '../../base/ids.ts'
import { readEmail } from '../../mail/address.ts'
import type { EarlierSend } from '../../store/sending/sends.ts'
import type { SendingCaller } from '../caller.ts'
import type { Idempotency } from '../idempotency.ts'
import type { WrittenMail } from './written-mail.ts'

const dayMs = 86_400_000

/** `formerKey` is the key that the same mail had on the day before. */
export type WrittenIdempotency = Idempotency & { formerKey: string }

/**
 * Returns the keys of this mail. A client may send one Message-ID to each recipient in a transaction of its own, as mailing
 * lists do, so the recipients are part of the key. The hash is over what people see: a client that tries again may write
 * another Date.
 */
export function writtenIdempotency(
  { id }: Pick<SendingCaller, 'id'>,
  { from, envelope, subject, body, tlsWish }: WrittenMail,
  atMs: number,
): WrittenIdempotency {
  const recipients = envelope.map(({ email }) => readEmail(email)?.key).sort()
  const named = sha256(JSON.stringify([body.messageId, readEmail(from.email)?.key, recipients])).toString(
    'hex',
  )
  const day = Math.floor(atMs / dayMs)
  const keyOn = (date: number) => `${id} ${named} ${date}`
  const digests = body.entries.map(({ sha256: digest }) => digest)
  // RFC 8689 2: the promise for a repeated mail with REQUIRETLS must not be that for the first one without it.
  const seen = [subject, body.text, body.html, digests, ...(tlsWish === null ? [] : [tlsWish])]
  return { key: keyOn(day), formerKey: keyOn(day - 1), requestHash: sha256(JSON.stringify(seen)) }
}

/** Whether the same mail now is a replay of this one: less than 24 hours have passed. */
export function isReplayed({ submissionId }: EarlierSend, atMs: number): boolean {
  return atMs - (uuidTimeMs(submissionId) ?? 0) < dayMs
}
