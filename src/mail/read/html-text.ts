// The plain text of an HTML body, without what a person does not see: one pass over the tags, with the elements open in it.
import { startOf } from './charset.ts'
import { type HtmlToken, readHtmlTokens } from './html-tokens.ts'
import { countVisible, withoutInvisible } from './invisible.ts'
import { type OpenElement, OpenElements } from './open-elements.ts'
import { PageStyle } from './style/page-style.ts'
import { showsText } from './style/visibility.ts'
import { TextWriter } from './text-writer.ts'

const maxHtml = 1 << 20
const maxAdded = 1024

/** Pictures, fallbacks and programs: what is in them is no text of the page. */
const unseen = new Set(
  'template noscript object svg audio video canvas progress meter datalist rp applet annotation annotation-xml mphantom'.split(
    ' ',
  ),
)
const pageParts = new Set(['html', 'head', 'body', 'frameset'])

export interface HtmlReading {
  text: string
  /** Characters of text that are left out because a person does not see them. */
  hiddenText: number
  invisibleCharacters: number
  bidiOverrides: number
  /** Too much style to tell what it hides: text from there on is left out. */
  isBeyond: boolean
}

/**
 * The text that a reader of `html` sees: paragraphs apart, list items with a `*`, quotes with `> `, the target of a
 * link in brackets where the text does not show it. Reads the first 2^20 characters. Linear, whatever the markup, and
 * never more than 1,024 characters longer than that: where it would be, rules and the marks of quotes go, the last first.
 */
export function htmlToText(html: string): string {
  return readHtmlText(html).text
}

/** The text, and how much was left out of it. */
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
    // Alone, browsers read these as an empty paragraph and a line break.
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

/** A frameset in front of all else stands for the body, which is not shown. */
function isOfFrames(tokens: HtmlToken[]): boolean {
  const first = tokens.find(
    (token) =>
      (token.kind === 'text' && /\S/.test(token.text)) ||
      (token.kind === 'open' && !headParts.has(token.name)),
  )
  return first?.kind === 'open' && first.name === 'frameset'
}

/** Those of all tags of this name, the first of each attribute, as browsers take them together. */
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
