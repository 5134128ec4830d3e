// Parses one command line into a command, or into the reply that refuses it.
import { isUtf8 } from 'node:buffer'
import { type Reply, reply } from '../reply.ts'
import type { Path, ReversePath } from './backend.ts'
import { nullPath, type PathFault, parsePath, pathLength, toPath } from './path.ts'

type PlainVerb = 'DATA' | 'RSET' | 'NOOP' | 'QUIT' | 'STARTTLS' | 'VRFY' | 'EXPN' | 'HELP'
export type Command =
  | { verb: PlainVerb }
  | { verb: 'HELO' | 'EHLO'; name: string }
  | { verb: 'MAIL'; from: ReversePath }
  /** `isWide`: the path has characters beyond ASCII. */
  | { verb: 'RCPT'; to: Path; isWide: boolean }
  | { verb: 'BDAT'; sizeBytes: number; isLast: boolean }
  /** `initial`: the first response, still in Base64; null if there is none. */
  | { verb: 'AUTH'; mechanism: string; initial: string | null }
  /** A refused command. `isFatal`: the connection cannot go on. */
  | { verb: 'BAD'; reply: Reply; isFatal: boolean }

/** The longest incomplete line that we keep. */
export const maxPendingLineBytes = 16_384
// RFC 5321 4.5.3.1.4: 512 octets, CRLF included. Extensions lengthen MAIL and RCPT.
const maxLineBytes = 512
const maxPathLineBytes = 2048
// RFC 4954 4: a line of an authentication has at most 12,288 octets.
export const maxAuthLineBytes = 12_288
const maxBytesOf: Partial<Record<string, number>> = {
  MAIL: maxPathLineBytes,
  RCPT: maxPathLineBytes,
  AUTH: maxAuthLineBytes,
}
const maxHeloLength = 255

/** Parses a line without its line feed. `hostname` becomes the domain of a bare `<postmaster>`. */
export function parseCommand(line: Buffer, hostname: string): Command {
  // A bare line feed must not end a command: relays disagree on it, which is how mail is smuggled.
  if (line[line.length - 1] !== 0x0d) return bad(500, '5.5.2', 'Lines must end in CRLF')
  const text = line.toString('utf8', 0, line.length - 1)
  if (/[\x00-\x1f\x7f-\x9f]/.test(text) || !isUtf8(line)) return bad(500, '5.5.2', 'Syntax error')
  const [, name = '', rest = ''] = /^([A-Za-z]+)(?: (.*))?$/.exec(text) ?? []
  const verb = name.toUpperCase()
  if (line.length + 1 > (maxBytesOf[verb] ?? maxLineBytes)) return bad(500, '5.5.2', 'Line too long')
  return parseVerb(verb, rest.trim(), hostname)
}

function parseVerb(verb: string, rest: string, hostname: string): Command {
  switch (verb) {
    case 'HELO':
    case 'EHLO':
      if (rest === '') return bad(501, '5.5.4', `Syntax: ${verb} hostname`)
      return { verb, name: rest.replace(/[^\x20-\x7e]/g, '?').slice(0, maxHeloLength) }
    case 'MAIL':
      return parseMail(rest)
    case 'RCPT':
      return parseRcpt(rest, hostname)
    case 'BDAT':
      return parseBdat(rest)
    case 'AUTH':
      return parseAuth(rest)
    case 'DATA':
    case 'RSET':
    case 'QUIT':
    case 'STARTTLS':
      return rest === '' ? { verb } : bad(501, '5.5.4', `${verb} takes no parameters`)
    case 'NOOP':
    case 'VRFY':
    case 'EXPN':
    case 'HELP':
      return { verb }
    default:
      return unknown(verb)
  }
}

function unknown(verb: string): Command {
  const refusal = reply(500, '5.5.1', 'Command not recognized')
  // A browser tricked into connecting to this port would send commands in the body of its request.
  const isFatal = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)$/.test(verb)
  return { verb: 'BAD', reply: refusal, isFatal }
}

function parseMail(rest: string): Command {
  const split = splitPath(rest, 'FROM:')
  if (!split) return bad(501, '5.5.4', 'Syntax: MAIL FROM:<address>')
  const path = split.path === '<>' ? nullPath : parsePath(split.path)
  if (typeof path === 'string') return badPath(path, '5.1.7')
  const from: ReversePath = { ...path, sizeBytes: null, body: null, needsUtf8: false }
  const refusal = applyParameters(from, split.parameters)
  if (refusal) return refusal
  // RFC 6531 3.4: an address beyond ASCII needs the SMTPUTF8 parameter.
  if (isWide(split.path) && !from.needsUtf8)
    return bad(553, '5.6.7', 'Internationalized address requires SMTPUTF8')
  return { verb: 'MAIL', from }
}

function parseRcpt(rest: string, hostname: string): Command {
  const split = splitPath(rest, 'TO:')
  if (!split) return bad(501, '5.5.4', 'Syntax: RCPT TO:<address>')
  // RFC 5321 4.1.1.3: postmaster may come without a domain.
  const to = /^<postmaster>$/i.test(split.path)
    ? toPath('postmaster', hostname.toLowerCase())
    : parsePath(split.path)
  if (typeof to === 'string') return badPath(to, '5.1.3')
  // RFC 5321 4.1.1.11: a parameter that was never announced is 555.
  if (split.parameters.length > 0) return bad(555, '5.5.4', 'Parameter not recognized')
  return { verb: 'RCPT', to, isWide: isWide(split.path) }
}

function splitPath(rest: string, keyword: string): { path: string; parameters: string[] } | null {
  if (rest.slice(0, keyword.length).toUpperCase() !== keyword) return null
  const text = rest.slice(keyword.length).trimStart()
  const length = pathLength(text)
  const tail = text.slice(length)
  if (length === 0 || (tail !== '' && !tail.startsWith(' '))) return null
  return { path: text.slice(0, length), parameters: tail.split(' ').filter((parameter) => parameter !== '') }
}

function applyParameters(from: ReversePath, parameters: string[]): Command | null {
  const seen = new Map<string, string>()
  for (const parameter of parameters) {
    const [, name = '', value] = /^([^=]*)(?:=(.*))?$/.exec(parameter) ?? []
    const keyword = name.toUpperCase()
    // QUIRK: some clients repeat a parameter unchanged, which does no harm. Two different values contradict each other.
    const before = seen.get(keyword)
    if (before === parameter.toUpperCase()) continue
    if (before !== undefined) return bad(501, '5.5.4', 'Duplicate parameter')
    seen.set(keyword, parameter.toUpperCase())
    const fault = applyParameter(from, keyword, value)
    if (fault !== null)
      return bad(fault, '5.5.4', fault === 555 ? 'Parameter not recognized' : 'Bad parameter')
  }
  return null
}

function applyParameter(from: ReversePath, keyword: string, value: string | undefined): 501 | 555 | null {
  switch (keyword) {
    case 'SIZE':
      // RFC 1870 3: up to 20 digits.
      if (value === undefined || !/^\d{1,20}$/.test(value)) return 501
      from.sizeBytes = Number(value)
      return null
    case 'BODY': {
      const body = value?.toUpperCase()
      // RFC 6152 2: 7BIT or 8BITMIME. RFC 3030 3: or BINARYMIME.
      if (body !== '7BIT' && body !== '8BITMIME' && body !== 'BINARYMIME') return 501
      from.body = body
      return null
    }
    case 'AUTH':
      if (value === undefined) return 501
      from.namesLogin = true
      return null
    case 'SMTPUTF8':
      if (value !== undefined) return 501
      from.needsUtf8 = true
      return null
    case 'REQUIRETLS':
      // RFC 8689 2: the parameter takes no value.
      if (value !== undefined) return 501
      from.requiresTls = true
      return null
    default:
      return 555
  }
}

function parseBdat(rest: string): Command {
  // RFC 3030 2: BDAT chunk-size [LAST].
  const match = /^(\d{1,15})( +LAST)?$/i.exec(rest)
  // Without its size, the chunk cannot be separated from the commands after it.
  if (!match) return { ...bad(501, '5.5.4', 'Syntax: BDAT size [LAST]'), isFatal: true }
  return { verb: 'BDAT', sizeBytes: Number(match[1]), isLast: match[2] !== undefined }
}

function parseAuth(rest: string): Command {
  // RFC 4954 4: AUTH mechanism [initial-response].
  const match = /^([A-Za-z0-9_-]{1,20})(?: +([A-Za-z0-9+/]*={0,2}))?$/.exec(rest)
  if (!match) return bad(501, '5.5.4', 'Syntax: AUTH mechanism [initial-response]')
  return { verb: 'AUTH', mechanism: match[1]!.toUpperCase(), initial: match[2] ?? null }
}

function badPath(fault: PathFault, status: string): Command & { verb: 'BAD' } {
  const texts = { syntax: 'Malformed address', too_long: 'Address too long', domain: 'Malformed domain' }
  // RFC 5321 4.5.3.1.10: 501 also for a path that is too long.
  return bad(501, status, texts[fault])
}

function bad(code: number, enhanced: string, text: string): Command & { verb: 'BAD' } {
  return { verb: 'BAD', reply: reply(code, enhanced, text), isFatal: false }
}

function isWide(text: string): boolean {
  return /[^\x00-\x7f]/.test(text)
}
