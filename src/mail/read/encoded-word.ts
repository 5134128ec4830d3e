// Decodes encoded words in header fields (RFC 2047) in linear time, and joins the bytes of neighbours first.
import { decodeText, windows1252Bytes } from './charset.ts'
import { decodeQuotedPrintable } from './transfer-encoding.ts'

interface EncodedWord {
  charset: string
  encoding: 'b' | 'q'
  content: string
}

/** `text` with every encoded word decoded. Text that only resembles an encoded word stays unchanged. */
export function decodeEncodedWords(text: string): string {
  if (!text.includes('=?')) return text
  let decoded = ''
  let run: EncodedWord[] = []
  let at = 0
  let close = 0
  // Each `?=` is searched once. A search from each of many starts would take quadratic time.
  const closeFrom = (from: number) => {
    if (close >= 0 && close < from) close = text.indexOf('?=', from)
    return close
  }
  while (at < text.length) {
    const start = text.indexOf('=?', at)
    const found = start < 0 ? null : readEncodedWord(text, start, closeFrom)
    const between = text.slice(at, start < 0 ? text.length : start)
    // RFC 2047 6.2: white space between two encoded words is not shown.
    if (found === null || run.length === 0 || between.trim() !== '') {
      decoded += decodeRun(run) + between
      run = []
    }
    if (start < 0) break
    if (found === null) {
      decoded += '=?'
      at = start + 2
    } else {
      run.push(found.word)
      at = found.end
    }
  }
  return decoded + decodeRun(run)
}

const wordStart = /=\?([^?\s]{1,75})\?([bq])\?/iy

function readEncodedWord(
  text: string,
  start: number,
  closeFrom: (from: number) => number,
): { word: EncodedWord; end: number } | null {
  wordStart.lastIndex = start
  const match = wordStart.exec(text)
  if (match === null) return null
  const contentStart = wordStart.lastIndex
  // QUIRK: mailers leave a bare ? inside the Q encoding. Only ?= ends the word, as in Python's email package.
  const close = closeFrom(contentStart)
  if (close < 0 || close - contentStart > maxContent - 2) return null
  // RFC 2231 5: a language may follow the charset, after an asterisk.
  const charset = match[1]!.split('*')[0]!
  const encoding = match[2]!.toLowerCase() as 'b' | 'q'
  return { word: { charset, encoding, content: text.slice(contentStart, close) }, end: close + 2 }
}

// QUIRK: RFC 2047 allows an encoded word 75 characters, but mailers write whole subjects as one word.
const maxContent = 5000

/** QUIRK: mailers split multibyte characters between words of one charset. As in libmime, their bytes are joined first. */
function decodeRun(run: EncodedWord[]): string {
  let decoded = ''
  for (let at = 0; at < run.length; ) {
    const { charset } = run[at]!
    const pieces: Buffer[] = []
    while (at < run.length && run[at]!.charset.toLowerCase() === charset.toLowerCase()) {
      pieces.push(contentBytes(run[at++]!))
    }
    decoded += decodeText(Buffer.concat(pieces), charset)
  }
  return decoded
}

function contentBytes({ charset, encoding, content }: EncodedWord): Buffer {
  if (encoding === 'b') return Buffer.from(content, 'base64')
  const text = content.replaceAll('_', ' ')
  // QUIRK: old mailers leave 8-bit bytes unencoded. The header was decoded by a guess, so they are decoded again.
  const guessed = /^utf-?8$/i.test(charset) ? null : windows1252Bytes(text)
  return decodeQuotedPrintable(guessed ?? Buffer.from(text))
}
