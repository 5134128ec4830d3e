// Writes header fields with folded lines, encoded-words, addresses and parameters, and refuses values that would split them.
import type { Mailbox } from '../address.ts'

// RFC 2047 2: a line that holds an encoded-word is at most 76 characters long.
const lineChars = 76
// RFC 2047 2: an encoded-word is at most 75 characters long. 64 leaves room for the field's name before it.
const encodedWordChars = 64
// RFC 5322 2.1.1: a line is at most 998 characters. A word longer than this is encoded, so that it can be folded.
const plainWordChars = 900
const quotedChars = 60

/** An unstructured field (RFC 5322 3.6.5), folded, ending in CRLF. Throws on CR, LF or NUL: a bug of the caller. */
export function unstructuredField(name: string, value: string): string {
  refuseBreaks(name, value)
  if (value === '') return `${name}:\r\n`
  return fold(name, isPlainText(value) ? value.split(' ') : encodedWords(value))
}

/** An address field such as From or To, ending in CRLF. Throws if an address cannot be written in a header. */
export function addressField(name: string, mailboxes: readonly Mailbox[]): string {
  const tokens: string[] = []
  for (const [index, { email, name: displayName }] of mailboxes.entries()) {
    if (!writableAddress.test(email))
      throw new Error(`an address that cannot be written reached the field ${name}`)
    const comma = index < mailboxes.length - 1 ? ',' : ''
    if (!displayName) {
      tokens.push(email + comma)
      continue
    }
    refuseBreaks(name, displayName)
    for (const word of phrase(displayName)) tokens.push(word)
    tokens.push(`<${email}>${comma}`)
  }
  return fold(name, tokens)
}

/**
 * A folded field of tokens that only white space may separate, ending in CRLF. The tokens are written unchanged. A line is
 * longer than 76 characters only if one token alone is.
 */
export function fold(name: string, tokens: readonly string[]): string {
  let line = `${name}:`
  let lines = ''
  for (const [index, token] of tokens.entries()) {
    const fits = line.length + 1 + token.length <= lineChars
    // A token that no line holds begins on the line of the name, as most programs write it.
    if (fits || (index === 0 && token.length >= lineChars && !token.startsWith('=?'))) {
      line += ` ${token}`
    } else {
      lines += `${line}\r\n`
      line = ` ${token}`
    }
  }
  return `${lines}${line}\r\n`
}

/**
 * The words of `name=value` for Content-Type and Content-Disposition, without semicolons. A short plain ASCII value
 * becomes a quoted string. Any other value becomes percent-encoded UTF-8 in numbered pieces.
 */
export function parameter(name: string, value: string): string[] {
  refuseBreaks(name, value)
  if (isQuotable(value) && !/["\\]/.test(value)) return [`${name}="${value}"`]
  const pieces = percentPieces(value, lineChars - name.length - 14)
  // RFC 2231 4: the value begins with its character set.
  if (pieces.length === 1) return [`${name}*=utf-8''${pieces[0]}`]
  // RFC 2231 4.1: the first of several pieces names the character set.
  return pieces.map((piece, index) => `${name}*${index}*=${index === 0 ? "utf-8''" : ''}${piece}`)
}

/** `name="…"` with encoded-words inside the quotes. This violates RFC 2047 5, but old mail programs understand it. */
export function fallbackParameter(name: string, value: string): string {
  refuseBreaks(name, value)
  if (isQuotable(value) && !/["\\]/.test(value)) return `${name}="${value}"`
  return `${name}="${encodedWords(value).join('\r\n ')}"`
}

function refuseBreaks(name: string, value: string): void {
  // Header injection: a line break in a value would start a field, or a body, of the writer's choice.
  if (/[\r\n\0]/.test(value)) throw new Error(`a line break or NUL reached the field ${name}`)
}

/** Whether every reader gives the same text back: printable ASCII words with one space between them. */
function isPlainText(value: string): boolean {
  if (!/^[\x20-\x7e]*$/.test(value) || /^ | $| {2}|=\?/.test(value)) return false
  return value.length <= plainWordChars || !value.split(' ').some((word) => word.length > plainWordChars)
}

function isQuotable(value: string): boolean {
  return value.length <= quotedChars && value !== '' && isPlainText(value)
}

// RFC 5322 3.2.3: the characters of an atom.
const atoms = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
// RFC 5321 4.1.2: Mailbox with a Dot-string or Quoted-string, both of which may contain UTF-8 (RFC 6531).
const writableAddress =
  /^(?:[^\0-\x20"(),:;<>@[\\\]\x7f]+|"(?:[^\0-\x1f"\\\x7f]|\\[\x20-\x7e])*")@[^\0-\x20"(),:;<>@[\\\]\x7f]+$/

function phrase(displayName: string): string[] {
  if (!isPlainText(displayName) || displayName.length > quotedChars) return encodedWords(displayName)
  if (atoms.test(displayName)) return displayName.split(' ')
  // RFC 5322 3.2.4: inside quotes a backslash escapes each quote and backslash.
  const quoted = `"${displayName.replace(/["\\]/g, '\\$&')}"`
  // Backslashes may double its length, and a quoted string has no place to fold that every reader knows.
  return quoted.length < lineChars ? [quoted] : encodedWords(displayName)
}

// RFC 2047 5: only these may stay unencoded in a phrase. The rule is applied everywhere.
const unencoded = /[A-Za-z0-9!*+/-]/

function encodedWords(text: string): string[] {
  const plain = text.match(/[A-Za-z0-9!*+/ -]/g)?.length ?? 0
  const bytes = Buffer.byteLength(text)
  // Chooses the shorter form: Q takes three characters for a byte that is not plain, B four for three bytes.
  return plain + 3 * (bytes - plain) <= (bytes * 4) / 3 ? quotedWords(text) : base64Words(text)
}

function quotedWords(text: string): string[] {
  const pieces = pack(text, encodedWordChars - '=?UTF-8?Q??='.length, (character) => {
    if (unencoded.test(character)) return character
    return character === ' ' ? '_' : hexadecimal(character, '=')
  })
  return pieces.map((piece) => `=?UTF-8?Q?${piece}?=`)
}

function base64Words(text: string): string[] {
  const roomBytes = Math.floor((encodedWordChars - '=?UTF-8?B??='.length) / 4) * 3
  const pieces = pack(text, roomBytes, (character) => Buffer.from(character).toString('latin1'))
  return pieces.map((piece) => `=?UTF-8?B?${Buffer.from(piece, 'latin1').toString('base64')}?=`)
}

function percentPieces(value: string, maxChars: number): string[] {
  // RFC 2231 7: an attribute-char stays, and the rest is percent-encoded.
  return pack(value, maxChars, (character) =>
    /[A-Za-z0-9!#$&+.^_`{|}~-]/.test(character) ? character : hexadecimal(character, '%'),
  )
}

/** Packs the encoded characters into pieces of at most `maxChars`. */
function pack(text: string, maxChars: number, encode: (character: string) => string): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const character of text) {
    const encoded = encode(character)
    // RFC 2047 5: a character is never split between two encoded-words.
    if (piece.length + encoded.length > maxChars) {
      pieces.push(piece)
      piece = ''
    }
    piece += encoded
  }
  pieces.push(piece)
  return pieces
}

function hexadecimal(character: string, mark: '=' | '%'): string {
  return Buffer.from(character).toString('hex').toUpperCase().replace(/../g, `${mark}$&`)
}
