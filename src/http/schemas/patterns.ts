// The patterns of values, each with an error text. Every regular expression engine reads them alike, with or without
// flags.

// Patterns here use only literal or \xHH character classes, non-capturing groups and counts. No Unicode classes, whose names
// differ between engines. No lookaround, except in one pattern that is published in that form.
const control = '\\x00-\\x1f\\x7f-\\x9f'
/** Spaces and invisible characters (Z and Cf of the Basic Multilingual Plane), literal: not every engine reads \u. */
const invisible = [
  ' \u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f',
  '\u2028-\u202f\u205f-\u206f\u3000\ufeff\ufff9-\ufffb',
].join('')
/** Neither letters nor digits, up to U+00A9. Beyond it, only Unicode's tables separate letters from other characters. */
const betweenWords = ' -/:-@\\[-`{-~\\xa0-\\xa9'

const alnum = '[0-9A-Za-z]'
const alnumHyphen = '[0-9A-Za-z-]'
const hexQuad = '[0-9A-Fa-f]{1,4}'

/** A label of a host name. `first` matches its first character. */
const hostLabel = (first: string) => `${first}(?:${alnumHyphen}{0,61}${alnum})?`
// RFC 3696 2: the last label of a name contains a letter; a name that ends in a number is read as an IPv4 address.
const hostName = `(?:${hostLabel(alnum)}\\.)*${hostLabel('[A-Za-z]')}`
const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const ipv4 = `${octet}(?:\\.${octet}){3}`
// RFC 4291 2.2: eight groups, or fewer around one `::`.
const ipv6 = [
  `(?:${hexQuad}:){7}(?:${hexQuad}|:)`,
  ...[6, 5, 4, 3, 2, 1].map((before) => `(?:${hexQuad}:){${before}}(?::${hexQuad}){1,${7 - before}}`),
  `(?:${hexQuad}:){1,6}:`,
  `:(?::${hexQuad}){1,7}`,
  '::',
].join('|')
const port = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
// RFC 3986 3.3: characters that a path holds literally; all others are percent-encoded.
const inPath = "(?:[0-9A-Za-z._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
const inQuery = "(?:[0-9A-Za-z._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*"
const url = `^https?://(?:${hostName}|${ipv4}|\\[(?:${ipv6})\\])(?::${port})?(?:/${inPath})?(?:\\?${inQuery})?$`

// RFC 5891 4.2.3.1: hyphens at the third and fourth character are reserved for encodings, of which xn-- is the only one.
const domainLabel = (first: string) =>
  `${first}(?:${alnumHyphen}{0,2}${alnum}|${alnumHyphen}(?:${alnum}${alnumHyphen}|-${alnum})${alnumHyphen}{0,58}${alnum})?`
const aLabel = `[Xx][Nn]--${alnumHyphen}{0,58}${alnum}`
const space = '\\t-\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'
const notInNames = `\\x00-,./:-@\\[-\`{-\\x7f${space}`
// An expression cannot say which characters beyond ASCII a label may hold (IDNA 2008).
const uLabel = `${alnumHyphen}*[^\\x00-\\x7f${space}][^${notInNames}]*`
const anyLabel = (first: string) => `(?:${domainLabel(first)}|${aLabel}|${uLabel})`
// Other characters that IDNA reads as dots, in names beyond ASCII.
const otherDots = '\u3002\uff0e\uff61'
const domain = [
  `^[${space}]*(?:(?:${anyLabel(alnum)}\\.)+${anyLabel('[A-Za-z]')}`,
  `|[^${notInNames}${otherDots}]*[${otherDots}][^${notInNames}]*)\\.?[${space}]*$`,
].join('')
const writtenDomain = '^(?:[0-9a-z](?:[0-9a-z-]{0,61}[0-9a-z])?\\.)+[a-z](?:[0-9a-z-]{0,61}[0-9a-z])?$'

export const patterns = {
  inboxId: ['^inb_[a-f0-9]{24}$', 'must be an inbox id: inb_ and 24 lowercase hexadecimal digits'],
  threadId: ['^thr_[a-f0-9]{24}$', 'must be a thread id: thr_ and 24 lowercase hexadecimal digits'],
  messageId: ['^msg_[a-f0-9]{24}$', 'must be a message id: msg_ and 24 lowercase hexadecimal digits'],
  messageIdOrZero: [
    '^(?:0|msg_[a-f0-9]{24})$',
    'must be a message id, msg_ and 24 lowercase hexadecimal digits, or 0',
  ],
  attachmentId: [
    '^att_[a-f0-9]{24}_[1-9][0-9]{0,2}$',
    'must be an attachment id: att_, 24 lowercase hexadecimal digits, _ and a number up to 999',
  ],
  webhookId: ['^whk_[a-f0-9]{24}$', 'must be a webhook id: whk_ and 24 lowercase hexadecimal digits'],
  uuid: ['^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$', 'must be a UUID'],
  // As published, including the lookahead.
  localPart: [
    '^(?!.*\\.\\.)[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$',
    'must be 1 to 64 of a-z, 0-9, dot, hyphen and underscore, with a letter or digit at both ends and no two dots in a row',
  ],
  // A line break would begin a header field of the sender's choice.
  oneLine: [`^[^${control}]*$`, 'must be one line without control characters'],
  // Finds the first letter or digit without backtracking.
  query: [
    `^[${betweenWords}]*[^${betweenWords}${control}][^${control}]*$`,
    'must be one line that contains a word to search for',
  ],
  headerValue: ['^[^\\r\\n]*$', 'must be one line'],
  // The invisible and the visible class are disjoint, so that the match is linear in the text.
  subject: [
    `^[${invisible}]*[^${invisible}${control}][^${control}]*$`,
    'must be one line without control characters and with at least one visible character',
  ],
  filename: [`^[^${control}/\\\\]+$`, 'must be a file name without slashes and control characters'],
  contentType: [
    "^[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}/[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}(?: *; *[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}=(?:[!#$%&'*+.^_`{|}~0-9A-Za-z-]{1,70}|\"[ !#-\\[\\]-~]{0,70}\"))*$",
    'must be a media type such as text/csv or text/calendar; method=REQUEST',
  ],
  contentId: ['^[!-;=?-~]+$', 'must be a content id without angle brackets and spaces'],
  metadataKey: ['^[A-Za-z0-9_.:-]{1,40}$', 'must have a name of 1 to 40 characters A-Z, a-z, 0-9, _ . : -'],
  // Excludes second 60, and the spellings that RFC 3339 allows but Date cannot read.
  time: [
    '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$',
    'must be a time with a time zone, such as 2026-11-21T09:00:00Z',
  ],
  writtenTime: [
    '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
    'must be a time such as 2026-11-21T09:00:00.000Z',
  ],
  idempotencyKey: ['^[A-Za-z0-9._:-]+$', 'must be 8 to 200 characters A-Z, a-z, 0-9, . _ : -'],
  url: [
    url,
    'must be a URL such as https://app.example.com/hooks, without user name and fragment, names in ASCII (xn--), other characters percent-encoded',
  ],
  domain: [domain, 'must be a fully qualified host name such as mail.example.com'],
  writtenDomain: [writtenDomain, 'must be a host name in ASCII and lower case'],
} as const

const expectations = new Map<string, string>(
  Object.values(patterns).map(([pattern, words]) => [pattern, words]),
)

/** Describes the expected form of a value that breaks this pattern. */
export function describePattern(pattern: string): string {
  return expectations.get(pattern) ?? `must match ${pattern}`
}
