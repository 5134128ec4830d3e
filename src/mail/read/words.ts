// Splits mail and queries into words of any language, by the same rules.

/** Limits in characters, of the text read from one mail and of each folded text. One character can fold to eighteen. */
const maxCharacters = 1 << 19
const maxFolded = 1 << 20
/** Limits per mail: different words, their characters and their positions. With prefixes they fit a tsvector of 1 MiB. */
const maxWords = 20_000
const maxWordCharacters = 200_000
const maxPositions = 60_000
/** Positions per word, as many as a tsvector keeps. */
const maxPositionsOfWord = 255
/** A longer word is split into several consecutive words. */
const maxWord = 64
/** A tsvector has 16,383 positions. After 16,000 they restart at 1, and the first 350 are also stored after 16,000. */
const positionsBeforeWrap = 16_000
const overlap = 350

/**
 * Scripts without spaces between words, and Korean, which adds endings to words. A query can match anywhere in a run of
 * them, so each character begins a word of two characters.
 */
const joined = 'Han Hira Kana Bopo Hang Yiii Thai Laoo Khmr Mymr Tale Talu Lana'
  .split(' ')
  .map((script) => `\\p{scx=${script}}`)
  .join('')
const wordsAlone = /[\p{L}\p{N}\p{M}]+/gu
const runsOfWord = new RegExp(`[${joined}]+|[^${joined}]+`, 'gv')
const joinedStart = new RegExp(`^[${joined}]`, 'v')
/** First code point of joined scripts. Most mail has none, and matching them costs ten times as much as finding words. */
const lowestJoined = 0x0e00
const mayBeJoined = /[\u0e00-\uffff]/

/** Ignored characters: invisible ones, accents, Hebrew points, Arabic vowel signs and strokes, marks around symbols. */
const unspoken = new RegExp(
  `[${[
    '\\p{Default_Ignorable_Code_Point}\\p{Cf}',
    '\\u0300-\\u036f\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f',
    '\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7',
    '\\u0640\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e8\\u06ea-\\u06ed',
  ].join('')}]+`,
  'gu',
)
/** Normalization sorts the marks after a letter in quadratic time. It also turns half-width ﾞ and ﾟ into marks. */
const tooManyMarks = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu
const plain = /^[\0-\x7f]*$/

/** The text without case, accents and variant forms of characters, for comparison. */
function fold(text: string): string {
  if (plain.test(text)) return text.toLowerCase()
  const bounded = text.replace(unspoken, '').replace(tooManyMarks, '$1')
  const spoken = bounded.normalize('NFKD').replace(unspoken, '').slice(0, maxFolded)
  // Three conversions, so that ẞ, ß and SS become equal.
  const lower = spoken.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ')
  return lower.normalize('NFC')
}

type Visit = (word: string, position: number) => void

/** Visits the words of a text, from position `first` on. Returns the next position. A query has its own `visitRun`. */
function visitWords(text: string, first: number, visit: Visit, visitRun: typeof visitPairs): number {
  let position = first
  const folded = fold(text)
  const found = folded.match(wordsAlone) ?? []
  const all = mayBeJoined.test(folded) ? found.flatMap((word) => word.match(runsOfWord) ?? []) : found
  for (const run of all) {
    const isJoined = run.charCodeAt(0) >= lowestJoined && joinedStart.test(run)
    position = isJoined ? visitRun([...run], position, visit) : visitPieces(run, position, visit)
  }
  return position
}

function visitPieces(run: string, first: number, visit: Visit): number {
  if (run.length <= maxWord) {
    visit(run, first)
    return first + 1
  }
  let position = first
  const characters = [...run]
  for (let at = 0; at < characters.length; at += maxWord)
    visit(characters.slice(at, at + maxWord).join(''), position++)
  return position
}

function visitPairs(characters: string[], first: number, visit: Visit): number {
  let position = first
  for (const [index, character] of characters.entries())
    visit(character + (characters[index + 1] ?? ''), position++)
  return position
}

/** The searchable fields of a mail, and the prefix for each of its words. */
export interface SearchedMail {
  fields: string[]
  prefix: string
}

/** The words of a mail in tsvector syntax. Words beyond the limits above are dropped from the end. Linear. */
export function writeVector({ fields, prefix }: SearchedMail): string {
  const positions = new Map<string, number[]>()
  let [left, characters, written, next] = [maxCharacters, 0, 0, 1]
  const visit = (found: string, position: number) => {
    let known = positions.get(found)
    if (!known) {
      if (positions.size >= maxWords || (characters += found.length) > maxWordCharacters) return
      positions.set(found, (known = []))
    }
    if (written >= maxPositions || known.length >= maxPositionsOfWord) return
    written++
    const wrapped = ((position - 1) % positionsBeforeWrap) + 1
    known.push(wrapped)
    if (position > positionsBeforeWrap && wrapped <= overlap) known.push(positionsBeforeWrap + wrapped)
  }
  for (const field of fields) {
    // A gap of one position, so that no phrase spans two fields.
    next = visitWords(field.slice(0, left), next, visit, visitPairs) + 1
    left -= Math.min(left, field.length)
  }
  return [...positions]
    .map(([found, at]) => `'${prefix}${found}'${at.length > 0 ? `:${at.join()}` : ''}`)
    .join(' ')
}

/** A searched word or prefix, `distance` positions after the previous term. */
interface Term {
  word: string
  distance: number
  isPrefix: boolean
}

/**
 * The phrases of a query, all of which must occur. Text without spaces is a phrase, such as an address, and so is
 * quoted text. A `*` after a word searches for words with that prefix. Empty if the query has no word.
 */
export function readQuery(query: string): Term[][] {
  const parts = query.match(/["“”„][^"“”„]*["“”„]?|[^\s"“”„]+/g) ?? []
  return parts.map(readPhrase).filter((phrase) => phrase.length > 0)
}

const asksForBeginning = /[\p{L}\p{N}\p{M}]\*["“”„]?$/u

function readPhrase(part: string): Term[] {
  const terms: (Term & { position: number })[] = []
  const add: Visit = (found, position) => {
    terms.push({
      word: found,
      distance: position - (terms.at(-1)?.position ?? position),
      isPrefix: false,
      position,
    })
  }
  const visitRun: typeof visitPairs = (characters, first) => {
    // The last character of a run forms no pair, because any character may follow it in the text.
    visitPairs(characters, first, (pair, position) => {
      if (characters.length === 1 || position < first + characters.length - 1) add(pair, position)
    })
    if (characters.length === 1) terms.at(-1)!.isPrefix = true
    return first + characters.length
  }
  visitWords(part, 1, add, visitRun)
  const last = terms.at(-1)
  if (last && asksForBeginning.test(part)) last.isPrefix = true
  return terms.map(({ position, ...term }) => term)
}
