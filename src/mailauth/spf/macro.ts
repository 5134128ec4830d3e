// Macros of SPF (RFC 7208 7): read once with the record, expanded for a sender, bounded whatever they ask for.

export type MacroLetter = 's' | 'l' | 'o' | 'd' | 'i' | 'p' | 'h' | 'c' | 'r' | 't' | 'v'

interface Macro {
  letter: MacroLetter
  /** Whether the value is escaped as in a URL. */
  isEscaped: boolean
  /** How many parts are kept, from the right. */
  parts: number
  isReversed: boolean
  /** What separates parts, each character on its own. */
  delimiters: string
}

/** Text, and macros in it. */
export type MacroString = readonly (string | Macro)[]

/** What each letter stands for. */
export type MacroValues = Readonly<Record<MacroLetter, string>>

// RFC 7208 7.1: macro-expand, or macro-literal, which is visible US-ASCII but "%"; explanations have spaces as well.
const token = /%\{([slodiphcrtv])(\d*)(r?)([.+,/_=-]*)\}|%([%_-])|([\x21-\x24\x26-\x7e]+)|( +)/iy
const escapes: Record<string, string> = { '%': '%', _: ' ', '-': '%20' }

interface Read {
  pieces: (string | Macro)[]
  /** Whether the last of it was a macro-expand. */
  endsInMacro: boolean
}

/** The value of a modifier that is not known, which holds no spaces, or null where it is malformed. */
export function parseMacroString(text: string): MacroString | null {
  return readTerm(text)?.pieces ?? null
}

/** The text of an explanation, which has spaces and every letter, or null where it is malformed. */
export function parseExplanation(text: string): MacroString | null {
  return readPieces(text)?.pieces ?? null
}

/** A name with macros in it, without spaces, or null where it is malformed. */
export function parseDomainSpec(text: string): MacroString | null {
  const read = readTerm(text)
  // RFC 7208 7.1: domain-end = ( "." toplabel [ "." ] ) / macro-expand
  return read && (read.endsInMacro || endsInTopLabel(text)) ? read.pieces : null
}

function readTerm(text: string): Read | null {
  const read = readPieces(text)
  // RFC 7208 7.2: the letters c, r and t are for explanations only.
  return read && usesLetter(read.pieces, 'crt') ? null : read
}

function endsInTopLabel(text: string): boolean {
  const name = text.replace(/\.$/, '')
  const label = name.slice(name.lastIndexOf('.') + 1)
  // RFC 7208 7.1: a toplabel has a letter or a hyphen in it, which stands at neither end.
  return (
    label.length < name.length && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i.test(label) && /[a-z-]/i.test(label)
  )
}

function readPieces(text: string): Read | null {
  const read: Read = { pieces: [], endsInMacro: false }
  token.lastIndex = 0
  for (let at = 0; at < text.length; at = token.lastIndex) {
    token.lastIndex = at
    const match = token.exec(text)
    if (match === null) return null
    const [, letter, digits = '', reversed, delimiters, escaped, literal, spaces] = match
    read.endsInMacro = letter !== undefined || escaped !== undefined
    if (letter === undefined) {
      read.pieces.push(escaped === undefined ? (literal ?? spaces)! : escapes[escaped]!)
      continue
    }
    const parts = digits === '' ? Number.POSITIVE_INFINITY : Number(digits)
    // RFC 7208 7.3: a number of parts must not be zero.
    if (parts === 0) return null
    const lower = letter.toLowerCase() as MacroLetter
    const isEscaped = letter !== lower
    read.pieces.push({
      letter: lower,
      isEscaped,
      parts,
      isReversed: reversed !== '',
      delimiters: delimiters!,
    })
  }
  return read
}

/** Whether a macro is one of `wanted`. */
export function usesLetter(pieces: MacroString, wanted: string): boolean {
  return pieces.some((piece) => typeof piece !== 'string' && wanted.includes(piece.letter))
}

const maxNameChars = 253

/**
 * The name that a domain-spec means, in lower case without its trailing dot, or null where it is none that DNS could be
 * asked for. It is made from its end, and no further than counts: thousands of macros cost no more than a few.
 */
export function expandName(pieces: MacroString, values: MacroValues): string | null {
  let text = ''
  for (let index = pieces.length - 1; index >= 0 && text.length <= maxNameChars + 1; index--)
    text = expand(pieces[index]!, values) + text
  return toName(text)
}

function toName(text: string): string | null {
  const name = truncate(text.replace(/\.$/, '').toLowerCase())
  return isName(name) ? name : null
}

/** The same for one without macros, as nearly all are; undefined where there are some. */
export function literalName(pieces: MacroString): string | null | undefined {
  return pieces.every((piece) => typeof piece === 'string') ? toName(pieces.join('')) : undefined
}

// RFC 7208 7.3: of a name of more than 253 characters labels are removed on the left until it fits.
function truncate(name: string): string {
  if (name.length <= maxNameChars) return name
  const dot = name.indexOf('.', name.length - maxNameChars - 1)
  return dot < 0 ? '' : name.slice(dot + 1)
}

/** Whether DNS can be asked for it. Macros bring in what senders wrote: controls and characters beyond ASCII do not pass. */
export function isName(name: string): boolean {
  if (name.length > maxNameChars || !/^[\x20-\x7e]+$/.test(name)) return false
  return name.split('.').every((label) => label !== '' && label.length <= 63)
}

/** The text of an explanation, cut where it is longer than `maxChars`. */
export function expandText(pieces: MacroString, values: MacroValues, maxChars: number): string {
  let text = ''
  for (const piece of pieces) {
    if (text.length > maxChars) break
    text += expand(piece, values)
  }
  return text.slice(0, maxChars)
}

function expand(piece: string | Macro, values: MacroValues): string {
  if (typeof piece === 'string') return piece
  const value = transform(values[piece.letter], piece)
  return piece.isEscaped ? escapeAsUrl(value) : value
}

// RFC 7208 7.3: the value is split at the delimiters, reversed, cut to its parts on the right, and joined with dots.
function transform(value: string, { parts, isReversed, delimiters }: Macro): string {
  if (delimiters === '' && !isReversed && parts === Number.POSITIVE_INFINITY) return value
  const separators = delimiters === '' ? '.' : delimiters
  const split: string[] = []
  let start = 0
  for (let at = 0; at < value.length; at++) {
    if (!separators.includes(value[at]!)) continue
    split.push(value.slice(start, at))
    start = at + 1
  }
  split.push(value.slice(start))
  if (isReversed) split.reverse()
  return split.slice(-Math.min(parts, split.length)).join('.')
}

// RFC 7208 7.3: what is not unreserved (RFC 3986) is escaped, as UTF-8.
function escapeAsUrl(value: string): string {
  return value.replace(/[^A-Za-z0-9._~-]+/g, (run) =>
    Buffer.from(run).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}
