// What a report says of one recipient, and how the reply that it quotes is found in its words.
import { wellFormed } from '../read/charset.ts'
import { type ReplyStage, saysWhy } from './reply-code.ts'

export interface RecipientReport {
  /** Each address that the report names for this recipient, as written there; none where it names none. */
  addresses: string[]
  action: 'failed' | 'delayed' | 'delivered'
  /** RFC 3463, such as 5.1.1. */
  enhanced: string | null
  /** The SMTP reply's code, where the report quotes one. */
  code: number | null
  /** What was answered with that reply; RCPT where the report does not say. */
  stage: ReplyStage
  /** The reply, or what else is said of the cause: one line, at most 1,000 characters. */
  text: string
}

/** A reply as words quote it; of code and status each may be missing. */
export type QuotedReply = Pick<RecipientReport, 'code' | 'enhanced' | 'stage' | 'text'>

const maxText = 1000
const maxStatuses = 20

// The subjects of RFC 3463 3 end at 7, which tells a status from most addresses of hosts.
const enhancedStatus = /(?<![\d.])([245]\.[0-7]\.\d{1,3})(?!\.?\d)/g
// What stands before or behind tells it from times, ids and parts of addresses.
const replyCode = /(?<![\w./@-]|\d:)([45][0-5]\d)(?=[\s:-]|$)/
/** RFC 3463: x.0.0 and x.1.0 say nothing but whether it is for good. */
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

/** The first enhanced status in the text. */
export function enhancedIn(text: string): string | null {
  return text.match(enhancedStatus)?.[0] ?? null
}

/** Whether the status leaves open what was meant. */
export function isOpen(enhanced: string | null): boolean {
  return enhanced === null || openStatus.test(enhanced)
}

/** The SMTP reply that the text quotes; its words go on to the next empty line. Without one, the text as it stands. */
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
 * QUIRK: gateways wrap the reply that they were given into one of their own, as in `5.1.0 Address rejected
 * 550-'5.7.1 …'`. The mildest counts, then the first that says something.
 */
function quotedStatus(text: string): string | null {
  const statuses = (text.match(enhancedStatus) ?? []).slice(0, maxStatuses)
  const mildest = statuses.find((status) => neverAboutTheAddress.test(status))
  return mildest ?? statuses.find((status) => !isOpen(status)) ?? statuses[0] ?? null
}

function stageIn(text: string): ReplyStage {
  return stages.find(([, words]) => words.test(text))?.[0] ?? 'rcpt'
}

/** The text as one line, cut. */
export function shortLine(text: string, max = maxText): string {
  const line = text.slice(0, 4 * max).replace(/[\p{Cc}\p{Z}]+/gu, ' ')
  return wellFormed(line.trim().slice(0, max))
}
