// Extracts the visible plain text of an HTML body, in one pass over its tags that tracks the open elements.
import { startOf } from './charset.ts'
import { type HtmlToken, readHtmlTokens } from './html-tokens.ts'
import { countVisible, withoutInvisible } from './invisible.ts'
import { type OpenElement, OpenElements } from './open-elements.ts'
import { PageStyle } from './style/page-style.ts'
import { showsText } from './style/visibility.ts'
import { TextWriter } from './text-writer.ts'

const maxHtml = 1 << 20
const maxAdded = 1024

/** Pictures, fallbacks and programs, whose content is no text of the page. */
const unseen = new Set(
  'template noscript object svg audio video canvas progress meter datalist rp applet annotation annotation-xml mphantom'.split(
    ' ',
  ),
)
const pageParts = new Set(['html', 'head', 'body', 'frameset'])

export interface HtmlReading {
  text: string
  /** Number of text characters that are left out because a person does not see them. */
  hiddenText: number
  invisibleCharacters: number
  bidiOverrides: number
  /** The page has too much style to determine what it hides. Text from there on is left out. */
  isBeyond: boolean
}

/**
 * The text that a reader of `html` sees: paragraphs apart, list items with a `*`, quotes with `> `. Link targets are in
 * brackets unless the text shows them. Reads the first 2^20 characters, always in linear time. The result is at most
 * 1,024 characters longer than that. If it would be longer, rules and quote marks are dropped, the last ones first.
 */
export function htmlToText(html: string): string {
  return readHtmlText(html).text
}

/** The text, and counts of the characters left out. */
export function readHtmlText(html: string): HtmlReading {
  const markup = startOf(html, maxHtml)
  return new PageReader(markup, html.slice(markup.length)).read()
}

class PageReader {
  readonly #length: number
  readonly #tokens: HtmlToken[]
  readonly #writer = new TextWriter()
  readonly #style: PageStyle
  readonly #elements: OpenElements
  readonly #body: OpenElement
  readonly #counts = { hiddenText: 0, invisibleCharacters: 0, bidiOverrides: 0 }

  constructor(markup: string, unread: string) {
    this.#length = markup.length
    this.#tokens = readHtmlTokens(markup)
    this.#style = new PageStyle(this.#tokens, unread)
    const html = this.#create('html', attributesOf('html', this.#tokens), null, null)
    const body = this.#create('body', attributesOf('body', this.#tokens), html, null)
    this.#body = { ...body, isUnseen: isOfFrames(this.#tokens) }
    this.#elements = new OpenElements(this.#body, {
      create: (...element) => this.#create(...element),
      onClose: (element) => {
        if (isWritten(element)) this.#writer.closeTag(element.name)
      },
      charge: (steps) => this.#style.charge(steps),
    })
  }

  read(): HtmlReading {
    for (const token of this.#tokens) {
      if (this.#style.isBeyond) {
        if (token.kind === 'text') this.#counts.hiddenText += countVisible(token.text)
      } else if (token.kind === 'text') this.#readText(token.text)
      else if (token.kind === 'open') this.#open(token.name, token.attributes)
      else if (token.kind === 'close') this.#close(token.name)
    }
    const text = this.#writer.finish(this.#length + maxAdded)
    return { text, ...this.#counts, isBeyond: this.#style.isBeyond }
  }

  #create(
    name: string,
    attributes: ReadonlyMap<string, string>,
    parent: OpenElement | null,
    previous: OpenElement | null,
  ): OpenElement {
    const index = (previous?.index ?? 0) + 1
    const element = { name, attributes, parent, previous, index, lastChild: null }
    const visibility = this.#style.visibilityOf(element, parent?.visibility ?? null)
    return { ...element, visibility, isUnseen: parent?.isUnseen === true || unseen.has(name) }
  }

  #open(name: string, attributes: ReadonlyMap<string, string>): void {
    if (pageParts.has(name)) {
      if (isWritten(this.#body) && name !== 'head') this.#writer.openTag(name, null)
      return
    }
    const element = this.#elements.open(name, attributes)
    if (element === null || !isWritten(element)) return
    const isMark = (name === 'li' || name === 'hr') && !showsText(element.visibility)
    this.#writer.openTag(isMark ? 'div' : name, name === 'a' ? hrefOf(attributes) : null)
    if (element.visibility.overridesDirection && !element.parent?.visibility.overridesDirection)
      this.#counts.bidiOverrides++
  }

  #close(name: string): void {
    if (this.#elements.close(name) || !isWritten(this.#elements.current)) return
    // Browsers read a lone `</p>` as an empty paragraph and a lone `</br>` as a line break.
    if (name === 'p' || pageParts.has(name)) this.#writer.closeTag(name)
    if (name === 'br') this.#writer.openTag(name, null)
  }

  #readText(text: string): void {
    const isBlank = !/\S/.test(text)
    const parent = isBlank ? this.#elements.current : this.#elements.textParent()
    if (parent.isUnseen) return
    const isSummaryOnly = parent.name === 'details' && !parent.attributes.has('open')
    if (showsText(parent.visibility) && !isSummaryOnly)
      this.#writer.write(withoutInvisible(text, this.#counts))
    else this.#counts.hiddenText += countVisible(text)
  }
}

const isWritten = ({ isUnseen, visibility }: OpenElement) => !isUnseen && !visibility.isRemoved

const headParts = new Set('html head base link meta basefont bgsound noscript'.split(' '))

/** Whether a frameset comes before all other content. It replaces the body, which is then not shown. */
function isOfFrames(tokens: HtmlToken[]): boolean {
  const first = tokens.find(
    (token) =>
      (token.kind === 'text' && /\S/.test(token.text)) ||
      (token.kind === 'open' && !headParts.has(token.name)),
  )
  return first?.kind === 'open' && first.name === 'frameset'
}

/** The attributes of all tags with this name. As in browsers, the first of each attribute counts. */
function attributesOf(name: string, tokens: HtmlToken[]): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>()
  for (const token of tokens) {
    if (token.kind !== 'open' || token.name !== name) continue
    for (const [key, value] of token.attributes) if (!attributes.has(key)) attributes.set(key, value)
  }
  return attributes
}

function hrefOf(attributes: ReadonlyMap<string, string>): string | null {
  const href = attributes.get('href')?.trim() ?? ''
  return /^(?:https?:|mailto:)/i.test(href) ? href : null
}
