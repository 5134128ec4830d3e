// The report about one recipient, and the search for the SMTP reply that its words quote.
import { wellFormed } from '../read/charset.ts'
import { type ReplyStage, saysWhy } from './reply-code.ts'

export interface RecipientReport {
  /** Each address that the report names for this recipient, as written. Empty if it names none. */
  addresses: string[]
  action: 'failed' | 'delayed' | 'delivered'
  /** RFC 3463, such as 5.1.1. */
  enhanced: string | null
  /** The code of the SMTP reply, or null if the report quotes none. */
  code: number | null
  /** The command that got this reply. RCPT if the report does not say. */
  stage: ReplyStage
  /** The reply, or another text about the cause: one line of at most 1,000 characters. */
  text: string
}

/** A reply as words quote it. Its code and its status may each be missing. */
export type QuotedReply = Pick<RecipientReport, 'code' | 'enhanced' | 'stage' | 'text'>

const maxText = 1000
const maxStatuses = 20

// The subjects of RFC 3463 3 end at 7, which distinguishes a status from most IP addresses.
const enhancedStatus = /(?<![\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/g
// The characters around a code distinguish it from times, ids and parts of addresses.
const replyCode = /(?<![\w./@-]|\d:)([45][0-5]\d)(?=[\s:-]|$)/
/** RFC 3463: x.0.0 and x.1.0 say only whether the failure is permanent. */
const openStatus = /^[245]\.[01]\.0$/
const neverAboutTheAddress = /^5\.[247]\./

const stages: readonly [ReplyStage, RegExp][] = [
  ['rcpt', /\bRCPT\b|\bnot like recipient/i],
  ['message', /\bend\s+of\s+(?:message\s+)?data\b|after\s+I\s+sent\s+the\s+message/i],
  ['message', /\b(?:to|after|for|our)\s+(?:pipelined\s+)?(?:DATA|TEXT)\b|\(DATA\)|^(?:>>> )?DATA$/m],
  ['mail', /\bMAIL\s+FROM\b/i],
  [
    'connect',
    /\b(?:after|to)\s+(?:initial\s+connection|HELO|EHLO|STARTTLS)\b|refused\s+to\s+talk|\bin\s+greeting\b/i,
  ],
]

/** The first enhanced status in the text, or null. */
export function enhancedIn(text: string): string | null {
  return text.match(enhancedStatus)?.[0] ?? null
}

/** Whether the status does not state the cause. */
export function isOpen(enhanced: string | null): boolean {
  return enhanced === null || openStatus.test(enhanced)
}

/** The SMTP reply that the text quotes, up to the next empty line. If it quotes none, the text itself. */
export function quotedReply(text: string): QuotedReply {
  const quoted = replyCode.exec(text)
  const rest = text.slice(quoted?.index ?? 0)
  const words = quoted ? rest.slice(0, /\n[ \t]*\n/.exec(rest)?.index) : rest
  return {
    code: quoted ? Number(quoted[1]) : null,
    enhanced: quotedStatus(text),
    stage: stageIn(text),
    text: shortLine(words),
  }
}

/** Whether the reply says more than that something failed. */
export function isConclusive({ code, enhanced, text }: QuotedReply): boolean {
  return code !== null || !isOpen(enhanced) || saysWhy(text)
}

/**
 * QUIRK: gateways wrap the reply that they got into their own, as in `5.1.0 Address rejected 550-'5.7.1 …'`. The
 * mildest status counts, then the first that states a cause.
 */
function quotedStatus(text: string): string | null {
  const statuses = (text.match(enhancedStatus) ?? []).slice(0, maxStatuses)
  const mildest = statuses.find((status) => neverAboutTheAddress.test(status))
  return mildest ?? statuses.find((status) => !isOpen(status)) ?? statuses[0] ?? null
}

function stageIn(text: string): ReplyStage {
  return stages.find(([, words]) => words.test(text))?.[0] ?? 'rcpt'
}

/** The text as one line, cut to `max` characters. */
export function shortLine(text: string, max = maxText): string {
  const line = text.slice(0, 4 * max).replace(/[\p{Cc}\p{Z}]+/gu, ' ')
  return wellFormed(line.trim().slice(0, max))
}
