// Lists of `tag=value`, the syntax of signatures and key records (RFC 6376 3.2).

export interface Tag {
  /** Without the white space around it. White space inside stays as written. */
  value: string
  /** The span of the value in the text, with the white space around it. */
  start: number
  end: number
}

export type TagList = ReadonlyMap<string, Tag>

const tagName = /^[A-Za-z][A-Za-z0-9_]*$/
// RFC 6376 3.2: visible characters except the semicolon, with folding white space between them. RFC 8616 5: and UTF-8 in
// internationalized mail.
const tagValue = /^(?:[\x21-\x3a\x3c-\x7e\x80-\xff\t ]|\r\n(?=[\t ]))*$/

/** The tags by their names, in order. Null if the text is no tag list. Takes linear time. */
export function parseTagList(text: string): TagList | null {
  const tags = new Map<string, Tag>()
  let start = 0
  for (const part of text.split(';')) {
    const end = start + part.length
    const equals = part.indexOf('=')
    // RFC 6376 3.2: one semicolon may end the list. An empty tag is allowed nowhere else.
    if (equals < 0 && end === text.length && start > 0 && trimFolding(part) === '') break
    const name = trimFolding(part.slice(0, Math.max(equals, 0)))
    const value = part.slice(equals + 1)
    if (!tagName.test(name) || !tagValue.test(value)) return null
    // RFC 6376 3.2: a list with the same tag twice is invalid as a whole.
    if (tags.has(name)) return null
    tags.set(name, { value: trimFolding(value), start: start + equals + 1, end })
    start = end + 1
  }
  return tags
}

/** The text without the folding white space at its ends. Other white space stays. */
function trimFolding(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isFolding(text.charCodeAt(start))) start++
  while (end > start && isFolding(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isFolding(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a
}

/** The text without any white space, for example folded base64. */
export function withoutFolding(text: string): string {
  return text.replace(/[\t\r\n ]+/g, '')
}

/** Decodes base64, which may be folded. Null if the text is not base64. */
export function decodeFoldedBase64(text: string): Buffer | null {
  const letters = withoutFolding(text)
  return /^[A-Za-z0-9+/]+={0,2}$/.test(letters) ? Buffer.from(letters, 'base64') : null
}
