// Makes strangers' text safe for a terminal: shown, never executed.

/**
 * Security: terminals execute control characters of one or two bytes, and others reverse the direction of text. Text from
 * mail or DNS could overwrite lines, change titles, or answer for the person at the keyboard.
 */
const obeyed = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const lineEndsAndTabs = /[\t\n]/g

/** Replaces each control character by a visible sign. Keeps line ends and tabs. */
export function inertText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(obeyed, signOf)
}

/** Like `inertText`, in one line. */
export function inertLine(text: string): string {
  return inertText(text).replace(lineEndsAndTabs, signOf)
}

/** Returns a JSON document with control characters escaped. */
export function inertJson(value: unknown): string {
  // RFC 8259 7: JSON escapes characters below U+0020; any other may be escaped.
  return JSON.stringify(value, null, 2).replace(obeyed, escapeOf)
}

/** Characters below U+0020 become Unicode's control pictures. */
function signOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '␡' : '\ufffd'
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
