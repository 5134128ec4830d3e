// Bounces that are written for people only: who failed and why, out of their words.
import { decodeEncodedWords } from './encoded-word.ts'
import type { HeaderScan } from './header-scan.ts'
import type { ParsedMail } from './parse.ts'
import { enhancedIn, quotedReply, type RecipientReport, shortLine } from './recipient-report.ts'

const longestLooked = 64 * 1024
const longestSection = 2000
const mostRecipients = 100

const mailSystem = /mailer-?daemon|postmaster|mail(?:er)?[ .]deliver|delivery (?:sub)?system/i
const bounceSubject =
  /undeliver|deliver(?:y|ing)?\b.{0,20}\bfail|fail(?:ure|ed)\b.{0,20}\b(?:notice|deliver)|return(?:ed|ing)\b.{0,20}\b(?:mail|sender)|delivery status|not be delivered|mail (?:system )?(?:error|failure)|\bmessage\b.{0,80}\bdelayed/i
const delaySubject = /delay|warning/i
const failureWords =
  /permanent|fatal|giv(?:en|ing) up|not going to try again|not be delivered|undeliverable|unable to deliver|fail(?:ed|ure)|was not delivered|returned|rejected/i
// From there on stands what was sent.
const originalBelow =
  /^[ \t]{0,3}-{2,80}.{0,40}\b(?:below this line|copy of|original m|header of|unsent message|message header)|^(?:received|return-path):/im
const address = /[^\s<>()"',;:[\]]{1,64}@[^\s<>()"',;:[\]]{1,253}/g

/**
 * What a bounce in words says, or null where the mail is none, or says nothing that is understood. Linear in the first
 * 64 KiB of its text.
 */
export function readWordedBounce(header: HeaderScan, mail: ParsedMail): RecipientReport[] | null {
  const failed = header.values('x-failed-recipients').slice(0, mostRecipients).join(' ')
  const from = decodeEncodedWords(header.first('from') ?? '')
  if (failed === '' && !mailSystem.test(from) && !bounceSubject.test(mail.subject)) return null
  const text = mail.text.slice(0, longestLooked)
  const below = originalBelow.exec(text)?.index ?? text.length
  const words = text.slice(0, below)
  const sections = sectionsOf(words)
  for (const email of addressesIn(failed)) if (!sections.has(email)) sections.set(email, words)
  if (sections.size === 0) sections.set('', words)
  const reports = [...sections].flatMap(([email, section]) => {
    const report = readSection(mail.subject, section, words)
    return report ? { ...report, addresses: email === '' ? [] : [email] } : []
  })
  return reports.length > 0 ? reports.slice(0, mostRecipients) : null
}

/** What stands behind each address, up to the next one. */
function sectionsOf(words: string): Map<string, string> {
  const found = [...words.matchAll(address)].slice(0, 10 * mostRecipients)
  const sections = new Map<string, string>()
  for (const [place, { 0: email, index }] of found.entries()) {
    const next = found.slice(place + 1).find((later) => later[0] !== email)
    if (!sections.has(email.replace(/\.+$/, '')))
      sections.set(email.replace(/\.+$/, ''), words.slice(index, next?.index).slice(0, longestSection))
    if (sections.size >= mostRecipients) break
  }
  return sections
}

function addressesIn(text: string): string[] {
  return [...text.matchAll(address)].slice(0, mostRecipients).map(([email]) => email)
}

function readSection(
  subject: string,
  section: string,
  words: string,
): Omit<RecipientReport, 'addresses'> | null {
  const own = quotedReply(section)
  const isSaid = own.code !== null || own.enhanced !== null
  const reply = isSaid ? own : quotedReply(words)
  const action = actionOf(subject, words, reply)
  return action && { ...reply, action, text: shortLine(isSaid ? section : words) }
}

function actionOf(
  subject: string,
  words: string,
  { code, enhanced }: Pick<RecipientReport, 'code' | 'enhanced'>,
): 'failed' | 'delayed' | null {
  if (delaySubject.test(subject)) return 'delayed'
  if ((code ?? 0) >= 500 || enhanced?.startsWith('5')) return 'failed'
  if (failureWords.test(subject) || failureWords.test(words)) return 'failed'
  return code !== null || enhancedIn(words)?.startsWith('4') ? 'delayed' : null
}
