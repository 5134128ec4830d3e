// Removes and counts the invisible characters of a text, except those that a word needs.

export interface InvisibleCounts {
  invisibleCharacters: number
  bidiOverrides: number
}

/**
 * All characters without width: format controls, fillers, variation selectors, and the tags U+E0000 to U+E007F. Tags
 * can encode a text that no person sees and every program reads.
 */
const invisible =
  /[\u00AD\u061C\u115F\u1160\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF0-\uFFFB\u{13430}-\u{1343F}\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E00FF}\u{E01F0}-\u{E0FFF}]|[\uFE00-\uFE0F]|[\u{E0100}-\u{E01EF}]|[\u17B4\u17B5]|[\u180B-\u180F]|\u034F/u
const eachInvisible = new RegExp(invisible, 'gu')
const override = /[\u202D\u202E]/
/** Marks, embeddings and isolates that Arabic and Hebrew use, and the soft hyphen. */
const harmless = /[\u00AD\u061C\u200E\u200F\u202A-\u202C\u2066-\u2069]/
/** Scripts with a character that joins or separates letters: Arabic, Indian scripts, Mongolian, and their neighbors. */
const joining =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Tibetan}\p{Script=Myanmar}\p{Script=Khmer}\p{M}]/u
const pictured = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]|\uFE0F/u
/** Includes the digits of keycaps. */
const emoji = /\p{Emoji}/u

/** The text without invisible characters, except joiners and selectors that a script or an emoji needs. Linear. */
export function withoutInvisible(
  text: string,
  counts: InvisibleCounts = { invisibleCharacters: 0, bidiOverrides: 0 },
): string {
  if (!invisible.test(text)) return text
  return text.replace(eachInvisible, (character, at: number) => {
    if (override.test(character)) counts.bidiOverrides++
    else if (isNeeded(character, text, at)) return character
    else if (character !== '\u00AD') counts.invisibleCharacters++
    return ''
  })
}

function isNeeded(character: string, text: string, at: number): boolean {
  if (harmless.test(character)) return character !== '\u00AD'
  const before = characterBefore(text, at)
  if (before === '' || (invisible.test(before) && before !== '\uFE0F')) return false
  if (character === '\u200D') return pictured.test(before) || joining.test(before)
  if (character === '\u200C') return joining.test(before)
  if (character === '\uFE0E' || character === '\uFE0F') return emoji.test(before)
  if (/[\u{E0100}-\u{E01EF}]/u.test(character)) return /\p{Script=Han}/u.test(before)
  if (/[\u180B-\u180D\u180F]/.test(character)) return /\p{Script=Mongolian}/u.test(before)
  // Mathematical signs and East Asian characters have variants.
  return (
    /[\uFE00-\uFE0D]/.test(character) &&
    /[\p{Sm}\p{Script=Han}\p{Script=Myanmar}\u3000-\u303F\uFF00-\uFFEF]/u.test(before)
  )
}

function characterBefore(text: string, at: number): string {
  const unit = text.charAt(at - 1)
  return /[\uDC00-\uDFFF]/.test(unit) ? text.slice(Math.max(0, at - 2), at) : unit
}

/** Number of characters that a person could see if the text were not hidden. */
export function countVisible(text: string): number {
  let count = 0
  for (const character of text) if (!/\s/.test(character) && !invisible.test(character)) count++
  return count
}
