// What a report says of one recipient, and how the reply that it quotes is found in its words.
import { wellFormed } from './charset.ts'

export interface RecipientReport {
  /** Each address that the report names for this recipient, as written there; none where it names none. */
  addresses: string[]
  action: 'failed' | 'delayed' | 'delivered'
  /** RFC 3463, such as 5.1.1. */
  enhanced: string | null
  /** The SMTP reply's code, where the report quotes one. */
  code: number | null
  /** The reply, or what else is said of the cause: one line, at most 1,000 characters. */
  text: string
}

const longestText = 1000

// The subjects of RFC 3463 3 end at 7, which tells a status from most addresses of hosts.
const enhancedStatus = /(?<![\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/
const replyCode = /(?<![\d.:/])([45][0-5]\d)(?:[ -]|$)/

/** The first enhanced status in the text. */
export function enhancedIn(text: string): string | null {
  return enhancedStatus.exec(text)?.[1] ?? null
}

/** The first SMTP reply that the text quotes: its code and its status, each null where there is none. */
export function quotedReply(text: string): Pick<RecipientReport, 'code' | 'enhanced'> {
  const quoted = replyCode.exec(text)
  return { code: quoted ? Number(quoted[1]) : null, enhanced: enhancedIn(text) }
}

/** The text as one line, cut. */
export function shortLine(text: string, longest = longestText): string {
  const line = text.slice(0, 4 * longest).replace(/[\p{Cc}\p{Z}]+/gu, ' ')
  return wellFormed(line.trim().slice(0, longest))
}
