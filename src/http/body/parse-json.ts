// Parses a body as JSON: valid UTF-8, a bounded number of values, and no hidden or repeated members.
import { isUtf8 } from 'node:buffer'
import { findRepeatedMember } from './repeated-member.ts'
import { RequestFault } from './request-fault.ts'

/** Returns the parsed value. Throws `invalid_json` or `invalid_request`. */
export function parseJson(bytes: Buffer): unknown {
  // RFC 8259 8.1: JSON is UTF-8; a byte order mark is not JSON, and JSON.parse refuses it.
  if (!isUtf8(bytes)) throw new RequestFault('invalid_json', 'The body must be UTF-8.')
  const text = bytes.toString()
  if (bytes.length > uncountedBytes && hasManyMarks(text)) refuseTooMany(bytes)
  const value = parse(text)
  // Raw NUL and surrogates are excluded by now. Only an escape can hide them, and it can also hide `__proto__`.
  if (text.includes('\\u') || text.includes('__proto__')) refuseHidden(value, '', 0)
  refuseRepeated(value, text)
  return value
}

// A send to 3,000 people with 100 files has 10,000 values.
const maxValues = 20_000
/** A body of up to this size cannot have more than `maxValues`. */
const uncountedBytes = 16 * 1024
const [quote, backslash, comma, bracket, brace] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b]

/**
 * Whether there may be too many values. Also counts commas and brackets within strings. Takes 10 µs for 100 KB of HTML,
 * `refuseTooMany` 170 µs.
 */
function hasManyMarks(text: string): boolean {
  let marks = 0
  for (const mark of ',[{')
    for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1))
      if (++marks === maxValues) return true
  return false
}

/**
 * Refuses many small values, which take far longer to parse than one long string. 16 MiB take 3.7 s for `{},{},…`, 7.3 s
 * for brackets alone, and 0.03 to 0.2 s for one string. This check takes 0.05 to 0.1 s.
 */
function refuseTooMany(bytes: Buffer): void {
  let values = 1
  let isText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) isText = !isText
    else if (isText) at += byte === backslash ? 1 : 0
    else if (byte === comma || byte === bracket || byte === brace) values++
  }
  if (values > maxValues)
    throw new RequestFault('invalid_json', `The body has more than ${maxValues} values.`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (text === '') throw new RequestFault('invalid_json', 'The body is empty. Send JSON.')
    // The parser's message quotes the body. Only the position at its end is used, if there is one.
    const position = / \((line \d+ column \d+)\)$/.exec((error as Error).message)?.[1]
    throw new RequestFault('invalid_json', `The body is not valid JSON${position ? ` at ${position}` : ''}.`)
  }
}

// Deeper than any schema, so a deeper body would be refused anyway.
const maxDepth = 32

function refuseHidden(value: unknown, pointer: string, depth: number): void {
  if (typeof value === 'string') refuseText(value, pointer)
  if (value === null || typeof value !== 'object') return
  if (depth === maxDepth)
    throw new RequestFault('invalid_json', `The body is nested more than ${maxDepth} levels deep.`)
  for (const [name, member] of Object.entries(value)) {
    refuseText(name, pointer)
    // Prototype pollution: copying such an object property by property changes the copy's prototype.
    if (name === '__proto__') throw new RequestFault('invalid_request', `${pointer}/__proto__ is unknown`)
    refuseHidden(member, depth < 4 ? `${pointer}/${name.slice(0, 50)}` : pointer, depth + 1)
  }
}

function refuseText(text: string, pointer: string): void {
  if (text.includes('\0'))
    throw new RequestFault('invalid_request', `${pointer || 'a name'} must not contain NUL`)
  if (!text.isWellFormed())
    throw new RequestFault('invalid_request', `${pointer || 'a name'} must not contain lone surrogates`)
}

/**
 * Refuses a repeated member: a proxy whose parser takes the first of the two would see a different request than we do.
 */
function refuseRepeated(value: unknown, text: string): void {
  const pointer = findRepeatedMember(value, text)
  if (pointer !== null) throw new RequestFault('invalid_json', `${pointer} occurs twice in the body.`)
}
