// The mail of the inbound benchmarks and the DNS records for it, both like those of real senders today.
import { generateKeyPairSync } from 'node:crypto'
import type { ZoneRecords } from '../../tests/support/dns-server.ts'
import { signMail } from '../../tests/support/sign-mail.ts'
import { type MailShape, writeContent, writeMessage } from './mail-content.ts'
import { poolSizeOf } from './pool.ts'

/** A message in its wire form without doubled dots, with the HELO name and sender for it. */
export interface PreparedMail {
  bytes: Buffer
  helo: string
  from: string
}

/** Writes the mail of this number and shape. Each number gives different content. */
export type WriteMail = (to: string, number: number, shape: MailShape) => PreparedMail

/** A sender whose mail can be verified, and the DNS zone for that. */
export interface VerifiedSender {
  zone: Record<string, ZoneRecords>
  write: WriteMail
}

// Not below .test: libunbound, which opendkim uses for DNS, answers by itself that no such name exists.
const domain = 'sender.example'
const selector = 's2026'
const helo = 'out7.mailer.example'
/** The fields that a large sender signs today. */
const names =
  'from:to:subject:date:message-id:mime-version:content-type:content-transfer-encoding:list-unsubscribe'

/** Makes a sender whose mail from 127.0.0.1 passes SPF by its second include, DKIM with RSA-2048, and DMARC. */
export function makeVerifiedSender(): VerifiedSender {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const form = { header: 'relaxed', body: 'relaxed' } as const
  const plan = { domain, selector, algorithm: 'rsa-sha256', privateKey, names, ...form } as const
  return {
    zone: zoneOf(publicKey.export({ type: 'spki', format: 'der' }).toString('base64')),
    write: (to, number, shape) => ({
      bytes: signMail(writeMail(domain, to, number, shape), [plan]),
      helo,
      from: `bounce@mail.${domain}`,
    }),
  }
}

/** Writes mail like that of the verified sender, but from another domain and without a signature. */
export function writeUnsigned(from: string): WriteMail {
  return (to, number, shape) => {
    const bytes = Buffer.from(writeMail(from, to, number, shape), 'latin1')
    return { bytes, helo, from: `bounce@mail.${from}` }
  }
}

/** Writes all mails of a pool, to these recipients round robin. */
export function writeMails(write: WriteMail, shape: MailShape, to: readonly string[]): PreparedMail[] {
  const length = poolSizeOf(shape.textBytes + (shape.attachedBytes ?? 0))
  return Array.from({ length }, (_, number) => write(to[number % to.length]!, number, shape))
}

function zoneOf(key: string): VerifiedSender['zone'] {
  const txt = (...texts: string[]): ZoneRecords => ({ TXT: texts })
  return {
    [domain]: txt('v=spf1 include:_spf.mailer.example ~all', 'site-verification=Zm9yIHNvbWUgc2VydmljZQ'),
    [`mail.${domain}`]: txt(
      'v=spf1 include:_spf.office.example include:_spf.mailer.example ip4:192.0.2.17 -all',
    ),
    '_spf.office.example': txt(
      'v=spf1 ip4:192.0.2.0/25 ip4:198.51.100.0/24 ip4:203.0.113.0/26 ip6:2001:db8:10::/48 ip6:2001:db8:2a::/48 -all',
    ),
    '_spf.mailer.example': txt('v=spf1 ip4:203.0.113.128/25 ip4:127.0.0.0/24 ip6:2001:db8:77::/48 ~all'),
    [`_dmarc.${domain}`]: txt(`v=DMARC1; p=reject; sp=reject; rua=mailto:dmarc@${domain}; adkim=r; aspf=r`),
    [`${selector}._domainkey.${domain}`]: txt(`v=DKIM1; k=rsa; p=${key}`),
    '1.0.0.127.in-addr.arpa': { PTR: [helo] },
    [helo]: { A: ['127.0.0.1'] },
  }
}

function writeMail(from: string, to: string, number: number, shape: MailShape): string {
  const day = String(1 + (number % 28)).padStart(2, '0')
  return writeMessage(writeContent(number, shape), [
    `Received: from app3.mailer.example (app3.mailer.example [192.0.2.44])\n\tby ${helo} (Mailer) with ESMTPS id 4cWq1J7d2nz9sRg\n\tfor <${to}>; ${day} Jan 2026 09:14:07 +0000 (UTC)`,
    `Date: ${day} Jan 2026 09:14:05 +0000`,
    `From: "Accounts, Sender Ltd" <accounts@${from}>`,
    `To: ${to}`,
    `Message-ID: <01000194f3c2a1be-7d0c2f9e-4b57-4c8a-9a35-${number.toString(16).padStart(12, '0')}@${from}>`,
    `List-Unsubscribe: <https://${from}/unsubscribe?u=3f8a90>,\n <mailto:unsubscribe@${from}?subject=3f8a90>`,
  ])
}
