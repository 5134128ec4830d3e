// The trace fields above a received message when it is read back as source (RFC 5321 4.4).

import type { MessageId } from '../../base/ids.ts'
import { dateTime } from '../../mail/write/date-time.ts'
import type { SecurityRecord } from '../../store/messages.ts'

/** Return-Path, Delivered-To, Received and Authentication-Results, each ending in CRLF. */
export function traceHeader(
  { envelope, smtp, authentication }: SecurityRecord,
  id: MessageId,
  receivedAt: Date,
): string {
  const { from, recipients, protocol, receivedBy } = envelope
  const { helo, remoteIp, tls } = smtp
  const address = remoteIp.includes(':') ? `IPv6:${remoteIp}` : remoteIp
  const security = tls.encrypted ? ` (using ${tls.protocol} with cipher ${tls.cipher})` : ''
  const results = Object.entries(authentication).filter(([, result]) => result !== 'not_evaluated')
  return [
    `Return-Path: <${from}>`,
    ...recipients.map((recipient) => `Delivered-To: ${recipient}`),
    // RFC 5321 4.4: from, by, with, id and for clauses; RFC 3848: the protocol's name.
    `Received: from ${helo || 'unknown'} ([${address}])${security}\r\n by ${receivedBy} (Posthorn) with ${protocol} id ${id.slice(4)}` +
      `${recipients.length === 1 ? `\r\n for <${recipients[0]}>` : ''}; ${dateTime(receivedAt)}`,
    // RFC 8601 2.2: without any method the result is "none".
    `Authentication-Results: ${receivedBy}; ${results.map(([method, result]) => `${method}=${result}`).join('; ') || 'none'}`,
    '',
  ].join('\r\n')
}
