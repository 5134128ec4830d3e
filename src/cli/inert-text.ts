// What strangers wrote, as a terminal may be given it: seen, and never obeyed.

/**
 * Security: a terminal obeys control characters, in one or two bytes, and turns the direction of text by others: what came by
 * mail, or from DNS, could write over lines, change titles, or answer for the person at the keyboard.
 */
const obeyed = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const lineEndsAndTabs = /[\t\n]/g

/** With line ends and tabs as they are, and in place of each other control character a sign for it. */
export function inertText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(obeyed, signOf)
}

/** In one line. */
export function inertLine(text: string): string {
  return inertText(text).replace(lineEndsAndTabs, signOf)
}

/** A JSON document, in which they are escaped. */
export function inertJson(value: unknown): string {
  // RFC 8259 7: JSON escapes those below U+0020; any other may be.
  return JSON.stringify(value, null, 2).replace(obeyed, escapeOf)
}

/** Of those below U+0020 the picture that Unicode has of it. */
function signOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '␡' : '\ufffd'
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
