// Verifies DKIM and ARC of one mail with our own verifier, over given TXT records.
import type { Lookup } from '../../src/mailauth/lookup.ts'
import { type MailVerdicts, MailVerifier } from '../../src/mailauth/mail-verifier.ts'

/** TXT records by name: their texts, or `temporary` if DNS does not answer now. */
export type TxtRecords = Readonly<Record<string, readonly string[] | 'temporary'>>

/** A missing name is `nxdomain`. */
export function lookupIn(records: TxtRecords): Lookup {
  return async (_type, name) => {
    const found = records[name]
    if (found === undefined) return { status: 'nxdomain' }
    if (found === 'temporary') return { status: 'temporary', reason: 'DNS answered SERVFAIL' }
    return { status: 'ok', records: found as never[] }
  }
}

export interface VerifyOptions {
  nowSeconds?: number
  /** How to cut the body into pieces of these lengths, in rotation. Default: one piece. */
  pieceLengths?: readonly number[]
}

/** The verdicts on a mail. The text before its first empty line is the header. */
export function verifyMail(
  mail: Buffer | string,
  lookup: Lookup,
  { nowSeconds = Math.floor(Date.now() / 1000), pieceLengths = [] }: VerifyOptions = {},
): Promise<MailVerdicts> {
  const bytes = Buffer.from(mail as Buffer)
  const empty = bytes.subarray(0, 2).toString() === '\r\n' ? -2 : bytes.indexOf('\r\n\r\n')
  const headerEnd = empty === -1 ? bytes.length : empty + 4
  const verifier = new MailVerifier(lookup, { nowSeconds })
  verifier.header(bytes.subarray(0, headerEnd))
  let at = headerEnd
  for (let piece = 0; at < bytes.length; piece++) {
    const length = pieceLengths.length > 0 ? pieceLengths[piece % pieceLengths.length]! : bytes.length
    verifier.body(bytes.subarray(at, at + length))
    at += length
  }
  return verifier.end()
}
