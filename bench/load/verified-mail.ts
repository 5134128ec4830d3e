// The mail that inbound benchmarks send, and what DNS says of it: signed, with records as senders of today have them.
import { generateKeyPairSync } from 'node:crypto'
import type { ZoneRecords } from '../../tests/support/dns-server.ts'
import { signMail } from '../../tests/support/sign-mail.ts'

/** A message as it stands on the wire, dots not doubled, and how its client says that it comes. */
export interface PreparedMail {
  bytes: Buffer
  helo: string
  from: string
}

/** Someone whose mail can be verified, and what DNS says for that. */
export interface VerifiedSender {
  zone: Record<string, ZoneRecords>
  write(to: string, bodyBytes: number): PreparedMail
}

// Not below .test: libunbound, which opendkim asks DNS with, says by itself that nothing is there.
const domain = 'sender.example'
const selector = 's2026'
const helo = 'out7.mailer.example'
/** Those of a signature of a large sender today. */
const names =
  'from:to:subject:date:message-id:mime-version:content-type:content-transfer-encoding:list-unsubscribe'

/** Mail of it from 127.0.0.1 passes SPF by the second of its includes, DKIM with RSA-2048, and DMARC. */
export function makeVerifiedSender(): VerifiedSender {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const form = { header: 'relaxed', body: 'relaxed' } as const
  const plan = { domain, selector, algorithm: 'rsa-sha256', privateKey, names, ...form } as const
  return {
    zone: zoneOf(publicKey.export({ type: 'spki', format: 'der' }).toString('base64')),
    write: (to, bodyBytes) => ({
      bytes: signMail(writeMail(domain, to, bodyBytes), [plan]),
      helo,
      from: `bounce@mail.${domain}`,
    }),
  }
}

/** The same mail without a signature, of a domain that has no records: nothing of it can be verified. */
export function writePlainMail(to: string, bodyBytes: number): PreparedMail {
  const from = 'unsigned.example'
  const bytes = Buffer.from(writeMail(from, to, bodyBytes), 'latin1')
  return { bytes, helo, from: `bounce@mail.${from}` }
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

function writeMail(from: string, to: string, bodyBytes: number): string {
  const fields = [
    `Received: from app3.mailer.example (app3.mailer.example [192.0.2.44])\r\n\tby ${helo} (Mailer) with ESMTPS id 4cWq1J7d2nz9sRg\r\n\tfor <${to}>; Mon, 05 Jan 2026 09:14:07 +0000 (UTC)`,
    `Date: Mon, 05 Jan 2026 09:14:05 +0000`,
    `From: "Accounts, Sender Ltd" <accounts@${from}>`,
    `To: ${to}`,
    `Message-ID: <01000194f3c2a1be-7d0c2f9e-4b57-4c8a-9a35-1f0de2c4b6a8-000000@${from}>`,
    'Subject: Your invoice 2026-0107 is ready',
    `List-Unsubscribe: <https://${from}/unsubscribe?u=3f8a90>,\r\n <mailto:unsubscribe@${from}?subject=3f8a90>`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 7bit',
  ]
  return `${fields.join('\r\n')}\r\n\r\n${writeBody(bodyBytes)}`
}

/** Lines of words, some often and most of them rarely, as in prose: 900 words in 5,000 bytes, a third of them different. */
function writeBody(bytes: number): string {
  const random = randomNumbers()
  const vocabulary = Array.from({ length: 600 }, () => {
    const letters = Array.from({ length: 1 + Math.floor(8 * random()) }, () => Math.floor(26 * random()))
    return letters.map((letter) => String.fromCharCode(97 + letter)).join('')
  })
  let text = ''
  for (let column = 0; text.length < bytes; ) {
    const word = vocabulary[Math.floor(vocabulary.length * random() ** 3)]!
    const isFull = column + word.length > 70
    text += isFull ? `\r\n${word}` : column === 0 ? word : ` ${word}`
    column = isFull ? word.length : column + word.length + 1
  }
  return `${text.slice(0, bytes - 2).trimEnd()}\r\n`
}

/** From 0 to 1; the same ones in every run. */
function randomNumbers(): () => number {
  let state = 1
  return () => {
    // A linear congruential generator.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
