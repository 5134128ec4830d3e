// What messages weigh in an answer, and how one that is too heavy for any is cut. Pure.

interface Texts {
  text: string
  html: string | null
  extractedText: string | null
  isCut: boolean
}

/** The texts that an answer holds at most, as the JSON that they become. */
export const maxAnswerBytes = 16 << 20
/** A character takes at most six bytes of JSON: `\u0001`. */
const mostGrowth = 6
/** Of each of the three texts of a message that is cut, so that together they fit whatever they hold. */
export const mostCut = Math.floor(maxAnswerBytes / mostGrowth / 3)

/** The bytes of the texts of `message m` that an answer shows: received mail has its new text apart, the same or not. */
export const textBytes = `(octet_length(m.text)::bigint
  * case when m.direction = 'inbound' and m.extracted_text is null then 2 else 1 end
  + coalesce(octet_length(m.html), 0) + coalesce(octet_length(m.extracted_text), 0))`

/** What the rest of it may weigh beside a few hundred bytes: a thousand addresses, attachments or references. */
export const restBytes = `(1000 + octet_length(m.recipients::text) + octet_length(m.attachments::text)
  + octet_length(m.reference_ids::text))`

/** How many of the messages, from the first on, an answer can hold: one at least. */
export function countFitting(rows: readonly (Texts & { weight: number })[]): number {
  let leftBytes = maxAnswerBytes
  // Most pages are so light that their JSON need not be weighed.
  if (rows.reduce((sum, { weight }) => sum + weight, 0) * mostGrowth <= leftBytes) return rows.length
  const fitting = rows.findIndex((row, index) => (leftBytes -= row.weight + jsonGrowth(row)) < 0 && index > 0)
  return fitting < 0 ? rows.length : fitting
}

/** The message, its texts cut where they are too long for any answer. */
export function cutToFit<Row extends Texts>(row: Row): Row {
  const texts = [row.text, row.html, row.extractedText]
  const length = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
  if (length * mostGrowth <= maxAnswerBytes) return row
  if (texts.reduce((sum, text) => sum + jsonBytes(text), 0) <= maxAnswerBytes) return row
  const cut = (text: string) => text.slice(0, mostCut).toWellFormed()
  const [html, extractedText] = [row.html && cut(row.html), row.extractedText && cut(row.extractedText)]
  return { ...row, text: cut(row.text), html, extractedText, isCut: true }
}

function jsonGrowth({ text, html, extractedText }: Texts): number {
  return [text, html, extractedText].reduce(
    (sum, one) => sum + jsonBytes(one) - Buffer.byteLength(one ?? ''),
    0,
  )
}

/** As JSON, in UTF-8, without making it: texts are megabytes. What PostgreSQL stores has no lone surrogates. */
export function jsonBytes(text: string | null): number {
  if (text === null) return 0
  let escapes = 0
  for (let index = 0; index < text.length; index++) escapes += escapeBytes(text.charCodeAt(index))
  return Buffer.byteLength(text) + escapes + '""'.length
}

/** What a character takes more than itself. RFC 8259 7 has five short ones beside the quote and the backslash. */
function escapeBytes(code: number): number {
  if (code >= 0x20) return code === 0x22 || code === 0x5c ? 1 : 0
  const isShort = code >= 0x08 && code <= 0x0d && code !== 0x0b
  return isShort ? 1 : '\\u0000'.length - 1
}
