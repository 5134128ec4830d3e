// Writes the results of the checks above a received mail (RFC 8601, RFC 7208 9.1), and finds forged fields in our name.

import type { AuthResult } from '../base/auth-result.ts'
import { parseDomain } from '../mail/address.ts'

/** The subject of a result, as `['header', 'd', 'example.com']`. The value may come from a stranger. */
export type ResultProperty = readonly [ptype: string, property: string, value: string]

/** The result of one check. A method with several results, such as dkim, has one entry for each. */
export interface MethodResult {
  /** The registered name: `spf`, `dkim`, `dmarc`, `arc`, `iprev`. */
  method: string
  result: AuthResult
  /** The reason, in a sentence. May contain text from strangers. */
  reason?: string | null
  properties: readonly ResultProperty[]
}

export interface ReceivedSpf {
  result: AuthResult
  /** In a sentence. */
  reason: string
  clientIp: string
  /** Empty for the null return path. */
  envelopeFrom: string
  helo: string
  /** Our own host name. */
  receiver: string
  identity: 'mailfrom' | 'helo'
  /** The term that matched. Null if none did. */
  mechanism: string | null
}

/** `utf8` if the mail came with SMTPUTF8, else `ascii`. */
export type HeaderCharset = 'ascii' | 'utf8'

const maxResults = 24
const maxProperties = 8
const maxValueOctets = 320
const maxReasonChars = 200
// RFC 5322 2.1.1: lines should be no longer than 78 characters.
const lineChars = 76

/**
 * The field Authentication-Results, ending in CRLF, with at most the first 24 results and 8 properties of each. Values
 * are written exactly, except that domains beyond ASCII may become A-labels. A property is left out if its value has
 * controls, exceeds 320 octets, or is not ASCII in mail that must be. Reasons are prose: they are cleaned and cut.
 * Throws if a name is no keyword, which would be our bug.
 *
 * Readers of mail trust only the topmost field of this name. The received bytes below it may contain others, which
 * anybody may have written, also with our name.
 */
export function authenticationResults(
  authservId: string,
  results: readonly MethodResult[],
  charset: HeaderCharset,
): string {
  const written = results.slice(0, maxResults).map((one) => resinfo(one, charset))
  // RFC 8601 2.2: without any result the field has "none".
  if (written.length === 0) return foldField('Authentication-Results', [[`${token(authservId)};`, 'none']])
  return foldField('Authentication-Results', [[token(authservId)], ...written].map(endWith(';')))
}

// RFC 8601 2.2: methodspec, reasonspec, and a propspec for each property.
function resinfo({ method, result, reason, properties }: MethodResult, charset: HeaderCharset): string[] {
  const written = properties.slice(0, maxProperties).flatMap(([ptype, property, given]) => {
    const value = exactValue(given, charset)
    return value === null ? [] : [`${keyword(ptype)}.${keyword(property)}=${pvalue(value)}`]
  })
  const why = reason ? mend(reason, charset) : ''
  return [`${keyword(method)}=${result}`, ...(why && quote(why, 'reason=').split(' ')), ...written]
}

/** The field Received-SPF, ending in CRLF. Values are written as in Authentication-Results, or left out. */
export function receivedSpf(spf: ReceivedSpf, charset: HeaderCharset): string {
  const { result, reason, clientIp, envelopeFrom, helo, receiver, identity } = spf
  const isError = result === 'temperror' || result === 'permerror'
  const why = mend(reason, charset)
  const pairs: [key: string, value: string][] = [
    ['client-ip', clientIp],
    ['envelope-from', envelopeFrom],
    ['helo', helo],
    ['receiver', receiver],
    ['identity', identity],
  ]
  // RFC 7208 9.1: "default" if no mechanism matched, and "problem" if there was an error.
  if (!isError && result !== 'none') pairs.push(['mechanism', spf.mechanism ?? 'default'])
  const written = pairs.flatMap((pair) => keyValue(pair, charset))
  if (isError) written.push(quote(why, 'problem=').split(' '))
  const first = isError ? [result] : [result, ...comment(why).split(' ')]
  return foldField('Received-SPF', [[...first, ...written.flatMap(endWith(';'))]])
}

function keyValue([key, given]: [key: string, value: string], charset: HeaderCharset): string[][] {
  const value = exactValue(given, charset)
  return value === null ? [] : [[`${key}=${dotAtom.test(value) ? value : quote(value)}`]]
}

/** Header injection: these characters would end a line, or change how a value is read. */
const forbidden = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const forbiddenRuns = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu

/** The value in the characters that the header may contain. Null if it cannot be written. */
function exactValue(value: string, charset: HeaderCharset): string | null {
  if (Buffer.byteLength(value) > maxValueOctets || forbidden.test(value)) return null
  return charset === 'utf8' || isAscii(value) ? value : withALabels(value)
}

/** A domain, or an address with an ASCII local part, with its domain in A-labels. Null for other values. */
function withALabels(value: string): string | null {
  const localPart = value.slice(0, value.lastIndexOf('@') + 1)
  const domain = parseDomain(value.slice(localPart.length))
  return domain !== null && isAscii(localPart) ? localPart + domain : null
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text)
}

/** Prose in one line: one space between words, question marks for forbidden characters, no encoded-words. */
function mend(reason: string, charset: HeaderCharset): string {
  const words = reason
    .slice(0, maxReasonChars)
    .replace(/[\t\r\n ]+/g, ' ')
    .trim()
  const mended = words.replace(forbiddenRuns, '?')
  return charset === 'utf8' ? mended : mended.replace(/[^\x00-\x7f]+/g, '?')
}

// RFC 2045 5.1: a token contains no tspecials.
const tokens = /^[!#$%&'*+.0-9A-Z^_`a-z{|}~-]+$/
// RFC 5322 3.2.3: dot-atom-text.
const dotAtom = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const hostName = /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/

// RFC 8601 2.2: pvalue = value / [ [ local-part ] "@" ] domain-name
function pvalue(value: string): string {
  const at = value.lastIndexOf('@')
  const isPlain = at > 0 && dotAtom.test(value.slice(0, at)) && hostName.test(value.slice(at + 1))
  return tokens.test(value) || isPlain ? value : quote(value)
}

function quote(value: string, before = ''): string {
  // RFC 5322 3.2.4: within quotes a backslash precedes each quote and backslash.
  return `${before}"${value.replace(/["\\]/g, '\\$&')}"`
}

function comment(text: string): string {
  // RFC 5322 3.2.2: within a comment a backslash precedes each parenthesis and backslash.
  return `(${text.replace(/[()\\]/g, '\\$&')})`
}

function token(value: string): string {
  if (!tokens.test(value)) throw new Error('the name of this server is no token')
  return value
}

// RFC 8601 2.2: names of methods, types and properties are Keywords of SMTP.
function keyword(name: string): string {
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(name))
    throw new Error('a method or property has no valid name')
  return name
}

/** Adds the mark to the last token of every group except the last group. */
function endWith(mark: string) {
  return (group: readonly string[], index: number, groups: readonly (readonly string[])[]): string[] =>
    index === groups.length - 1 ? [...group] : [...group.slice(0, -1), group.at(-1)! + mark]
}

/** Each group but the first begins a line. A line exceeds 76 characters only if a single token does. */
function foldField(name: string, groups: readonly (readonly string[])[]): string {
  const lines = groups.flatMap((group, index) => foldGroup(index === 0 ? `${name}:` : '', group))
  return lines.map((line) => `${line}\r\n`).join('')
}

function foldGroup(start: string, group: readonly string[]): string[] {
  const lines: string[] = []
  let line = start
  for (const [index, one] of group.entries()) {
    if (index > 0 && line.length + 1 + one.length > lineChars) {
      lines.push(line)
      line = ''
    }
    line += ` ${one}`
  }
  return [...lines, line]
}
