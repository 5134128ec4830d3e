// Decodes the content of an attachment from the span in its entry, at once and without the code under test.
import { createHash } from 'node:crypto'
import type { ParsedAttachment } from '../../src/mail/read/parse.ts'
import { decodeQuotedPrintable } from '../../src/mail/read/transfer-encoding.ts'

export function decodeSpan(raw: Buffer, { start, length, encoding }: ParsedAttachment['span']): Buffer {
  const body = raw.subarray(start, start + length)
  if (encoding === 'base64') return decodeBase64(body)
  if (encoding === 'uuencode') return decodeUuencode(body)
  return encoding === 'quoted-printable' ? decodeQuotedPrintable(body) : body
}

/** Pieces with padding may follow each other. After them, an end without padding counts in whole groups. */
export function decodeBase64(body: Buffer): Buffer {
  const texts = body.toString('latin1').split('=', maxPaddings)
  const last = texts.length > maxPaddings - 1 ? null : texts.pop()!
  const pieces = texts.map((text) => Buffer.from(text, 'base64')).filter(({ length }) => length > 0)
  const rest = Buffer.from(last ?? '', 'base64')
  const restBytes = pieces.length > 0 ? rest.length - (rest.length % 3) : rest.length
  return Buffer.concat([...pieces, rest.subarray(0, restBytes)])
}

const maxPaddings = 200_000

/**
 * Decodes between the first `begin` and the first `end`. Never returns more bytes than came in, whatever the lengths of
 * lines say.
 */
export function decodeUuencode(body: Buffer): Buffer {
  const lines = body.toString('latin1').split('\n')
  const begin = lines.findIndex((line) => /^begin [0-7]{3,4}(?: |\r?$)/.test(line))
  const end = lines.findIndex((line, index) => index > begin && line.trimEnd() === 'end')
  let taken = lines.slice(0, begin + 1).join('\n').length + 1
  let given = 0
  return Buffer.concat(
    lines.slice(begin + 1, end < 0 ? undefined : end + 1).map((line) => {
      taken += line.length + 1
      const bytes = uuLine(line.slice(0, 86).replace(/\r$/, '')).subarray(0, taken - given)
      given += bytes.length
      return bytes
    }),
  )
}

function uuLine(line: string): Buffer {
  if (!/^[ -`]/.test(line)) return Buffer.alloc(0)
  const values = Array.from(line.padEnd(85), (character) => (character.charCodeAt(0) - 32) & 63)
  const [length, ...sixes] = values
  const bits = sixes.map((six) => six.toString(2).padStart(6, '0')).join('')
  return Buffer.from(
    Array.from({ length: length! }, (_, at) => Number.parseInt(bits.slice(8 * at, 8 * at + 8), 2)),
  )
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
