// Selects the text, HTML and attachment parts of a message by the algorithm of RFC 8621 4.1.4.
import type { MimePart } from './mime-parts.ts'
import { isDecodable, transferEncoding } from './transfer-encoding.ts'

export interface SelectedBodies {
  /** The parts to read as plain text, in order. They are HTML if there is nothing else. */
  text: MimePart[]
  html: MimePart[]
  /** All other parts, and media shown between the text, in message order. */
  attachments: MimePart[]
}

/**
 * Sorts the leaves under `root`. Damaged text, whose end is missing or whose encoding is wrong, is an attachment. It is
 * also shown if there is no other text.
 */
export function selectBodies(root: MimePart): SelectedBodies {
  const selected: SelectedBodies = { text: [], html: [], attachments: [] }
  select([root], 'mixed', { isAlternative: false, wantsText: true, wantsHtml: true }, selected)
  for (const part of selected.attachments) if (isText(part) && isDamaged(part)) displayDamaged(part, selected)
  return selected
}

function displayDamaged(part: MimePart, selected: SelectedBodies): void {
  if (selected.text.length === 0) selected.text.push(part)
  if (isHtml(part) && !selected.html.some(isHtml)) selected.html = [part]
}

interface Wanted {
  isAlternative: boolean
  wantsText: boolean
  wantsHtml: boolean
}

function select(parts: MimePart[], multipart: string, outer: Wanted, selected: SelectedBodies): void {
  const wanted = { ...outer }
  const textBefore = selected.text.length
  const htmlBefore = selected.html.length
  for (const [index, part] of parts.entries()) {
    if (isMultipart(part) && !part.isUnterminated) {
      const kind = part.contentType.slice('multipart/'.length)
      select(
        part.parts,
        kind,
        { ...wanted, isAlternative: wanted.isAlternative || kind === 'alternative' },
        selected,
      )
    } else if (isDisplayed(part, index, multipart)) display(part, multipart, wanted, selected)
    else selected.attachments.push(part)
  }
  if (multipart !== 'alternative' || !wanted.wantsText || !wanted.wantsHtml) return
  // RFC 8621 4.1.4: an alternative of only one kind serves as the other kind as well.
  const text = selected.text.slice(textBefore)
  const html = selected.html.slice(htmlBefore)
  if (text.length === 0) selected.text.push(...html)
  if (html.length === 0) selected.html.push(...text)
}

function isDisplayed(part: MimePart, index: number, multipart: string): boolean {
  if (part.disposition.value === 'attachment' || isDamaged(part)) return false
  const isMedia = isInlineMedia(part)
  if (!isMedia && !isText(part)) return false
  if (index === 0) return true
  return (
    multipart !== 'related' &&
    (isMedia || !(part.disposition.parameters.has('filename') || part.typeParameters.has('name')))
  )
}

function display(part: MimePart, multipart: string, wanted: Wanted, selected: SelectedBodies): void {
  if (!isText(part)) selected.attachments.push(part)
  else if (multipart === 'alternative') selected[isHtml(part) ? 'html' : 'text'].push(part)
  else {
    if (wanted.isAlternative && isHtml(part)) wanted.wantsText = false
    if (wanted.isAlternative && !isHtml(part)) wanted.wantsHtml = false
    if (wanted.wantsText) selected.text.push(part)
    if (wanted.wantsHtml) selected.html.push(part)
  }
}

function isDamaged(part: MimePart): boolean {
  const encoding = transferEncoding(part.header.first('content-transfer-encoding') ?? '')
  return part.isUnterminated || !isDecodable(part.body, encoding)
}

function isHtml(part: MimePart): boolean {
  return part.contentType === 'text/html'
}

function isMultipart(part: MimePart): boolean {
  return part.contentType.startsWith('multipart/')
}

/** Includes a multipart that turned out to have no boundary, whose content can only be read as text. */
function isText(part: MimePart): boolean {
  return part.contentType === 'text/plain' || part.contentType === 'text/html' || isMultipart(part)
}

function isInlineMedia(part: MimePart): boolean {
  return /^(?:image|audio|video)\//.test(part.contentType)
}
