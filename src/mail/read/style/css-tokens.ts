// CSS as tokens (CSS Syntax Level 3), with the end of each bracket, so that every reader of them takes linear time.
import { tokenize, tokenTypes } from 'css-tree/tokenizer'
import { ident, string } from 'css-tree/utils'

export const kinds = tokenTypes

export interface CssToken {
  kind: number
  /** With escapes decoded: a name (identifier, function, at-rule, hash), the content of a string, or else the source. */
  text: string
  /** For an opening bracket or function: index of its closing bracket, or the number of tokens if it is never closed. */
  close: number
}

const closers = new Map([
  [kinds.LeftCurlyBracket, kinds.RightCurlyBracket],
  [kinds.LeftSquareBracket, kinds.RightSquareBracket],
  [kinds.LeftParenthesis, kinds.RightParenthesis],
  [kinds.Function, kinds.RightParenthesis],
])

/** The tokens of `css` without its comments. Linear. */
export function readTokens(css: string): CssToken[] {
  const tokens: CssToken[] = []
  const open: { token: CssToken; closer: number }[] = []
  tokenize(css, (kind, start, end) => {
    if (kind === kinds.Comment) return
    const token = { kind, text: textOf(kind, css.slice(start, end)), close: -1 }
    const closer = closers.get(kind)
    if (closer !== undefined) open.push({ token, closer })
    else if (open.at(-1)?.closer === kind) open.pop()!.token.close = tokens.length
    tokens.push(token)
  })
  for (const { token } of open) token.close = tokens.length
  return tokens
}

function textOf(kind: number, source: string): string {
  if (kind === kinds.String) return string.decode(source)
  if (kind === kinds.WhiteSpace) return ' '
  const text = source.includes('\\') ? ident.decode(source) : source
  if (kind === kinds.Function) return text.slice(0, -1)
  return kind === kinds.AtKeyword || kind === kinds.Hash ? text.slice(1) : text
}

/** Index of the first token from `at` on that is not white space, or `end`. */
export function skipSpace(tokens: CssToken[], at: number, end: number): number {
  let next = at
  while (next < end && tokens[next]!.kind === kinds.WhiteSpace) next++
  return next
}

/** Returns the index after the token at `at`, or after the bracket that it opens. */
export function indexAfter({ close }: CssToken, at: number, end: number): number {
  return close < 0 ? at + 1 : Math.min(close + 1, end)
}

/** The source of the tokens in lower case, without comments and with at most one space between words. */
export function writtenValue(tokens: CssToken[], from: number, to: number): string {
  let value = ''
  for (let at = from; at < to; at++) value += writtenAs(tokens[at]!)
  return value.trim().toLowerCase()
}

function writtenAs({ kind, text }: CssToken): string {
  if (kind === kinds.Function) return `${text}(`
  if (kind === kinds.Hash) return `#${text}`
  if (kind === kinds.Url || kind === kinds.BadUrl) return 'url()'
  return kind === kinds.String || kind === kinds.BadString ? '""' : text
}

/** The ranges between commas that are outside brackets. */
export function splitAtCommas(tokens: CssToken[], from: number, to: number): [from: number, to: number][] {
  const ranges: [number, number][] = []
  let start = from
  for (let at = from; at < to; at = indexAfter(tokens[at]!, at, to)) {
    if (tokens[at]!.kind !== kinds.Comma) continue
    ranges.push([start, at])
    start = at + 1
  }
  ranges.push([start, to])
  return ranges
}
