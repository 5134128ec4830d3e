// SPF macros (RFC 7208 7): parsed once with the record, expanded for a sender, within bounds for any record.

export type MacroLetter = 's' | 'l' | 'o' | 'd' | 'i' | 'p' | 'h' | 'c' | 'r' | 't' | 'v'

interface Macro {
  letter: MacroLetter
  /** Whether the value is escaped as in a URL. */
  isEscaped: boolean
  /** Number of parts kept, from the right. */
  parts: number
  isReversed: boolean
  /** The characters that separate parts. */
  delimiters: string
}

/** Text and macros. */
export type MacroString = readonly (string | Macro)[]

/** The value of each macro letter. */
export type MacroValues = Readonly<Record<MacroLetter, string>>

// RFC 7208 7.1: macro-expand, or macro-literal, which is visible US-ASCII except "%". Explanations contain spaces as well.
const token = /%\{([slodiphcrtv])(\d*)(r?)([.+,/_=-]*)\}|%([%_-])|([\x21-\x24\x26-\x7e]+)|( +)/iy
const escapes: Record<string, string> = { '%': '%', _: ' ', '-': '%20' }

interface Read {
  pieces: (string | Macro)[]
  /** Whether the last piece is a macro-expand. */
  endsInMacro: boolean
}

/** Parses the value of an unknown modifier, which contains no spaces. Null if it is malformed. */
export function parseMacroString(text: string): MacroString | null {
  return readTerm(text)?.pieces ?? null
}

/** Parses an explanation, which may contain spaces and every letter. Null if it is malformed. */
export function parseExplanation(text: string): MacroString | null {
  return readPieces(text)?.pieces ?? null
}

/** Parses a name with macros, without spaces. Null if it is malformed. */
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
  // RFC 7208 7.1: a toplabel contains a letter or a hyphen. It neither begins nor ends with a hyphen.
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
    // RFC 7208 7.3: the number of parts must not be zero.
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

/** Whether a macro has one of the `wanted` letters. */
export function usesLetter(pieces: MacroString, wanted: string): boolean {
  return pieces.some((piece) => typeof piece !== 'string' && wanted.includes(piece.letter))
}

const maxNameChars = 253

/**
 * The expanded name of a domain-spec, in lower case without its trailing dot. Null if DNS could not be asked for it.
 * Expands from the end, and only as far as the name can reach: thousands of macros cost no more than a few.
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

/** The same for a domain-spec without macros, as nearly all are. Undefined if it has macros. */
export function literalName(pieces: MacroString): string | null | undefined {
  return pieces.every((piece) => typeof piece === 'string') ? toName(pieces.join('')) : undefined
}

// RFC 7208 7.3: a name of more than 253 characters loses labels on the left until it fits.
function truncate(name: string): string {
  if (name.length <= maxNameChars) return name
  const dot = name.indexOf('.', name.length - maxNameChars - 1)
  return dot < 0 ? '' : name.slice(dot + 1)
}

/** Whether DNS can be asked for it. Macros insert text of senders, so controls and non-ASCII characters are refused. */
export function isName(name: string): boolean {
  if (name.length > maxNameChars || !/^[\x20-\x7e]+$/.test(name)) return false
  return name.split('.').every((label) => label !== '' && label.length <= 63)
}

/** Expands an explanation, cut to `maxChars`. */
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

// RFC 7208 7.3: splits the value at the delimiters, reverses it, keeps its parts on the right, and joins them with dots.
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

// RFC 7208 7.3: characters that are not unreserved (RFC 3986) are escaped, as UTF-8.
function escapeAsUrl(value: string): string {
  return value.replace(/[^A-Za-z0-9._~-]+/g, (run) =>
    Buffer.from(run).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}
