// Reads the failed recipients and the causes from bounces that are written for people.
import { decodeEncodedWords } from '../read/encoded-word.ts'
import type { HeaderScan } from '../read/header-scan.ts'
import type { ParsedMail } from '../read/parse.ts'
import {
  enhancedIn,
  isConclusive,
  isOpen,
  type QuotedReply,
  quotedReply,
  type RecipientReport,
} from './recipient-report.ts'

const maxScanned = 64 * 1024
const maxSection = 2000
const maxSubject = 1000
const maxRecipients = 100

const mailSystem = /mailer-?daemon|postmaster|mail(?:er)?[ .]deliver|delivery (?:sub)?system/i
const bounceSubject =
  /undeliver|deliver(?:y|ing)?\b.{0,20}\bfail|fail(?:ure|ed)\b.{0,20}\b(?:notice|deliver)|return(?:ed|ing)\b.{0,20}\b(?:mail|sender)|delivery status|not be delivered|mail (?:system )?(?:error|failure)|\bmessage\b.{0,80}\bdelayed/i
const delaySubject = /delay|warning/i
const answerSubject = /^(?:auto(?:matic)?[ -]?(?:reply|response)\b|out of (?:the )?office)/i
/** Only bounces use these words. */
const undelivered =
  /\b(?:could|can|was|were) ?(?:not|n['’]t) be delivered|\bwas not delivered|undeliver(?:able|ed)|\bunable to deliver|\bnot able to be delivered|\bdid not reach\b|\bdeliver\w{0,3}\b.{0,40}\b(?:fail(?:ed|ure)|aborted)\b|\berror\b.{0,60}\bdeliver/i
const failureWords =
  /permanent|fatal|giv(?:en|ing) up|not going to try again|not be delivered|fail(?:ed|ure)|returned|rejected|aborted after|mailbox is full/i
// The sent mail begins here.
const originalBelow =
  /^[ \t]{0,3}-{2,80}.{0,40}\b(?:below this line|copy of|original m|header of|unsent message|message header)|^(?:received|return-path):/im
const address = /[^\s<>()"',;:[\]]{1,64}@[^\s<>()"',;:[\]]{1,253}/g

/**
 * The recipients that a bounce in words reports. Null if the mail is no bounce or is not understood. Linear in the
 * first 64 KiB of its text.
 */
export function readWordedBounce(header: HeaderScan, mail: ParsedMail): RecipientReport[] | null {
  const failed = header.values('x-failed-recipients').slice(0, maxRecipients).join(' ').slice(0, maxScanned)
  const words = wordsOf(mail)
  if (failed === '' && !isBounce(header, mail.subject, words)) return null
  const sections = sectionsOf(words)
  for (const email of addressesIn(failed)) if (!sections.has(email)) sections.set(email, words)
  if (sections.size === 0) sections.set('', words)
  const forAll = quotedReply(words)
  const reported = reportedOfAll(mail.subject, words)
  const reports = [...sections].flatMap(([email, section]) => {
    const own = section === words ? forAll : quotedReply(section)
    const reply = isConclusive(own) ? own : forAll
    const action = actionOf(reply, reported)
    return action ? { ...reply, action, addresses: email === '' ? [] : [email] } : []
  })
  return reports.length > 0 ? reports.slice(0, maxRecipients) : null
}

/**
 * The same reports, completed by the words if their status does not state the cause. QUIRK: some servers write 5.0.0
 * for everything, and the reply that they got only into the text.
 */
export function completeByWords(recipients: RecipientReport[], mail: ParsedMail): RecipientReport[] {
  const words = wordsOf(mail)
  const replies = new Map(
    [...sectionsOf(words)].map(([email, section]) => [email.toLowerCase(), quotedReply(section)]),
  )
  const forAll = recipients.length === 1 ? quotedReply(words) : undefined
  return recipients.map((recipient) => {
    const [own] = recipient.addresses.flatMap((email) => replies.get(email.toLowerCase()) ?? [])
    const reply = own ?? forAll
    return reply && isOpen(recipient.enhanced) ? completed(recipient, reply) : recipient
  })
}

function completed(recipient: RecipientReport, reply: QuotedReply): RecipientReport {
  const enhanced = isOpen(reply.enhanced) ? recipient.enhanced : reply.enhanced
  if (recipient.code !== null || !isConclusive(reply)) return { ...recipient, enhanced, stage: reply.stage }
  return { ...recipient, ...reply, enhanced }
}

/** The mail's own words, without the mail that it returns. */
function wordsOf({ text }: ParsedMail): string {
  const scanned = text.slice(0, maxScanned)
  return scanned.slice(0, originalBelow.exec(scanned)?.index)
}

function isBounce(header: HeaderScan, subject: string, words: string): boolean {
  const start = subject.slice(0, maxSubject)
  if (mailSystem.test(decodeEncodedWords(header.first('from') ?? '')) || bounceSubject.test(start))
    return true
  // RFC 3834 5: an automatic answer on behalf of a person says so. It is no bounce, whatever the person wrote.
  const isAnswer = /auto-(?:replied|notified)/i.test(header.first('auto-submitted') ?? '')
  return !isAnswer && !answerSubject.test(start) && undelivered.test(words)
}

/** The text from each address up to the next one. */
function sectionsOf(words: string): Map<string, string> {
  const found = [...words.matchAll(address)].slice(0, 10 * maxRecipients).map(({ 0: match, index }) => {
    // QUIRK: Sendmail writes `<user@example.com>... User unknown`. Others omit the brackets.
    return { email: match.replace(/\.+$/, ''), index }
  })
  const sections = new Map<string, string>()
  let next = 0
  for (const { email, index } of found) {
    // The next different address. `next` only advances, because the same address may occur a thousand times.
    while (next < found.length && (found[next]!.index <= index || found[next]!.email === email)) next++
    if (!sections.has(email)) sections.set(email, words.slice(index, found[next]?.index).slice(0, maxSection))
    if (sections.size >= maxRecipients) break
  }
  return sections
}

function addressesIn(text: string): string[] {
  return [...text.matchAll(address)].slice(0, maxRecipients).map(([email]) => email)
}

/** Facts about all recipients from subject and words, apart from any reply. */
interface Reported {
  isDelay: boolean
  isFailure: boolean
  isTemporary: boolean
}

function reportedOfAll(subject: string, words: string): Reported {
  return {
    isDelay: delaySubject.test(subject),
    isFailure: [subject, words].some((text) => failureWords.test(text) || undelivered.test(text)),
    isTemporary: enhancedIn(words)?.startsWith('4') === true,
  }
}

function actionOf({ code, enhanced }: QuotedReply, reported: Reported): 'failed' | 'delayed' | null {
  if (reported.isDelay) return 'delayed'
  if (reported.isFailure || (code ?? 0) >= 500 || enhanced?.startsWith('5')) return 'failed'
  return code !== null || reported.isTemporary ? 'delayed' : null
}
