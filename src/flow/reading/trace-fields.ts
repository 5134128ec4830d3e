// The trace fields above a received message when it is read back as source (RFC 5321 4.4).

import type { MessageId } from '../../base/ids.ts'
import { dateTime } from '../../mail/write/date-time.ts'
import {
  authenticationResults,
  type HeaderCharset,
  type ReceivedSpf,
  receivedSpf,
} from '../../mailauth/result-fields.ts'
import type { SecurityRecord } from '../../store/mailbox/messages.ts'

/** Return-Path, Delivered-To, Authentication-Results, Received-SPF and Received, each ending in CRLF. */
export function traceHeader(security: SecurityRecord, id: MessageId, receivedAt: Date): string {
  const { from, recipients, protocol, receivedBy } = security.envelope
  const { helo, remoteIp, tls } = security.smtp
  const charset = protocol.startsWith('UTF8') ? 'utf8' : 'ascii'
  const address = remoteIp.includes(':') ? `IPv6:${remoteIp}` : remoteIp
  const secured = tls.encrypted ? ` (using ${tls.protocol} with cipher ${tls.cipher})` : ''
  return [
    `Return-Path: <${from}>\r\n`,
    ...recipients.map((recipient) => `Delivered-To: ${recipient}\r\n`),
    // RFC 8601 4: above the other trace fields of this server. Below them it could be taken for a sender's own.
    authenticationResults(receivedBy, security.methods ?? [], charset),
    // RFC 7208 9.1: above the Received field of this server.
    ...spfField(security, charset),
    // RFC 5321 4.4: from, by, with, id and for clauses; RFC 3848: the protocol's name.
    `Received: from ${helo || 'unknown'} ([${address}])${secured}\r\n by ${receivedBy} (Posthorn) with ${protocol} id ${id.slice(4)}` +
      `${recipients.length === 1 ? `\r\n for <${recipients[0]}>` : ''}; ${dateTime(receivedAt)}\r\n`,
  ].join('')
}

function spfField({ methods = [], envelope, smtp }: SecurityRecord, charset: HeaderCharset): string[] {
  const spf = methods.find(({ method }) => method === 'spf')
  if (!spf) return []
  const facts: ReceivedSpf = {
    result: spf.result,
    reason: spf.reason ?? '',
    mechanism: spf.mechanism ?? null,
    identity: spf.properties.some(([, name]) => name === 'helo') ? 'helo' : 'mailfrom',
    clientIp: smtp.remoteIp,
    envelopeFrom: envelope.from,
    helo: smtp.helo,
    receiver: envelope.receivedBy,
  }
  return [receivedSpf(facts, charset)]
}
