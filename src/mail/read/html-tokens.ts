// Splits HTML into tags and text as a browser's tokenizer does (HTML, 13.2.5), always in linear time.
import { decodeEntities } from './html-entities.ts'

export type HtmlToken =
  | { kind: 'text'; text: string }
  | { kind: 'open'; name: string; attributes: ReadonlyMap<string, string> }
  | { kind: 'close'; name: string }
  /** The content of a `<style>`. It comes before the text and tags that follow the element. */
  | { kind: 'style'; css: string; attributes: ReadonlyMap<string, string> }
  | { kind: 'doctype' }

/** Elements whose content is neither markup nor visible. */
const rawText = new Set(['script', 'style', 'title', 'textarea', 'iframe', 'noembed', 'noframes'])
const noAttributes: ReadonlyMap<string, string> = new Map()
const tagName = /<(\/?)([a-zA-Z][^\s/>]*)/y
const maxName = 40

/** All tokens in order, without comments, the content of scripts and titles, and tags that never end. */
export function readHtmlTokens(markup: string): HtmlToken[] {
  const tokens: HtmlToken[] = []
  let at = 0
  while (at < markup.length) {
    const open = markup.indexOf('<', at)
    const textEnd = open < 0 ? markup.length : open
    if (textEnd > at) tokens.push({ kind: 'text', text: decodeEntities(markup.slice(at, textEnd)) })
    if (open < 0) break
    at = readMarkup(markup, open, tokens)
  }
  return tokens
}

/** Reads the tag, comment or lone `<` at `open`. Returns the index where text continues. */
function readMarkup(markup: string, open: number, tokens: HtmlToken[]): number {
  const next = markup[open + 1]
  if (next === '!' || next === '?') return readDeclaration(markup, open, tokens)
  tagName.lastIndex = open
  const match = tagName.exec(markup)
  if (match === null) {
    if (next === '/' && open + 2 < markup.length) return endOf(markup, '>', open + 2)
    tokens.push({ kind: 'text', text: '<' })
    return open + 1
  }
  const name = match[2]!.slice(0, maxName).toLowerCase()
  const { attributes, end } = readAttributes(markup, tagName.lastIndex)
  // A tag that is still open at the end of the page is ignored.
  if (end === null) return markup.length
  if (match[1] === '/') tokens.push({ kind: 'close', name })
  else if (name === 'xmp' || name === 'plaintext') return readAsWritten(markup, name, attributes, end, tokens)
  else if (name === 'noscript') return readFallback(markup, attributes, end, tokens)
  else if (rawText.has(name)) return readRawText(markup, name, attributes, end, tokens)
  else tokens.push({ kind: 'open', name, attributes })
  return end
}

function readDeclaration(markup: string, open: number, tokens: HtmlToken[]): number {
  if (!markup.startsWith('<!--', open)) {
    if (/^<!doctype/i.test(markup.slice(open, open + 9))) tokens.push({ kind: 'doctype' })
    return endOf(markup, '>', open + 2)
  }
  // `<!-->` and `<!--->` are whole comments.
  const short = /<!--(?:-?>)/y
  short.lastIndex = open
  if (short.test(markup)) return short.lastIndex
  const end = /--!?>/g
  end.lastIndex = open + 4
  return end.test(markup) ? end.lastIndex : markup.length
}

function endOf(markup: string, mark: string, from: number): number {
  const found = markup.indexOf(mark, from)
  return found < 0 ? markup.length : found + mark.length
}

const styleTag = /<style(?=[\s/>])/gi

/** Browsers with scripts neither show nor parse the content of `<noscript>`. Browsers without scripts apply its style. */
function readFallback(
  markup: string,
  attributes: ReadonlyMap<string, string>,
  from: number,
  tokens: HtmlToken[],
): number {
  const close = /<\/noscript(?=[\s/>])/gi
  close.lastIndex = from
  const end = close.exec(markup)?.index ?? markup.length
  const content = markup.slice(from, end)
  tokens.push({ kind: 'open', name: 'noscript', attributes }, { kind: 'text', text: content })
  styleTag.lastIndex = 0
  while (styleTag.test(content)) {
    const tag = readAttributes(content, styleTag.lastIndex)
    if (tag.end === null) break
    styleTag.lastIndex = readRawText(content, 'style', tag.attributes, tag.end, tokens)
  }
  return end
}

/** Reads content that browsers show verbatim, tags included. */
function readAsWritten(
  markup: string,
  name: string,
  attributes: ReadonlyMap<string, string>,
  from: number,
  tokens: HtmlToken[],
): number {
  const close = /<\/xmp(?=[\s/>])/gi
  close.lastIndex = from
  const end = (name === 'xmp' && close.exec(markup)?.index) || markup.length
  tokens.push({ kind: 'open', name, attributes }, { kind: 'text', text: markup.slice(from, end) })
  return end
}

function readRawText(
  markup: string,
  name: string,
  attributes: ReadonlyMap<string, string>,
  from: number,
  tokens: HtmlToken[],
): number {
  const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
  close.lastIndex = from
  const found = close.exec(markup)
  const end = found?.index ?? markup.length
  if (name === 'style') tokens.push({ kind: 'style', css: markup.slice(from, end), attributes })
  return found === null ? end : (readAttributes(markup, close.lastIndex).end ?? markup.length)
}

const spaces = /[\s/]*/y
const attributeName = /=?[^\s/>=]*/y
const equals = /\s*=\s*/y
const unquoted = /[^\s>]*/y

/** The attributes up to the tag's `>`, the first of each name. `end` is the index after `>`, or null if it is missing. */
function readAttributes(
  markup: string,
  from: number,
): { attributes: ReadonlyMap<string, string>; end: number | null } {
  if (markup[from] === '>') return { attributes: noAttributes, end: from + 1 }
  const attributes = new Map<string, string>()
  let at = from
  while (at < markup.length) {
    at = skip(spaces, markup, at)
    if (markup[at] === '>') return { attributes, end: at + 1 }
    const nameEnd = skip(attributeName, markup, at)
    const name = markup.slice(at, Math.min(nameEnd, at + maxName)).toLowerCase()
    const valueStart = skip(equals, markup, nameEnd)
    let value = ''
    at = nameEnd
    if (valueStart > nameEnd) {
      const quote = markup[valueStart]
      const isQuoted = quote === '"' || quote === "'"
      const valueEnd = isQuoted ? markup.indexOf(quote, valueStart + 1) : skip(unquoted, markup, valueStart)
      if (valueEnd < 0) break
      value = markup.slice(isQuoted ? valueStart + 1 : valueStart, valueEnd)
      at = isQuoted ? valueEnd + 1 : valueEnd
    }
    if (!attributes.has(name)) attributes.set(name, decodeEntities(value))
  }
  return { attributes, end: null }
}

/** Index of the end of the sticky expression's match, which may be empty. */
function skip(expression: RegExp, markup: string, at: number): number {
  expression.lastIndex = at
  expression.test(markup)
  return Math.max(at, expression.lastIndex)
}
