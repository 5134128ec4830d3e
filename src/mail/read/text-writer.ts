// Writes the text of an HTML body as lines: paragraphs apart, items with a `*`, quotes with `> `, links with their targets.

const deepestQuote = 10
const maxLinkText = 8 * 1024
const paragraphs = new Set([
  'p',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'ul',
  'ol',
  'pre',
  'blockquote',
  'table',
  'dl',
])
const lines = new Set(
  'div section article header footer main nav aside address center form fieldset figure tr dt dd body html'.split(
    ' ',
  ),
)

/** Writes words and collapses white space as HTML does. At a break, the largest requested number of line ends counts. */
export class TextWriter {
  readonly #pieces: string[] = []
  /** Indexes of the pieces that represent no text of the HTML. */
  readonly #marks: number[] = []
  #length = 0
  #breaks = 0
  #hasSpace = false
  #isAtLineStart = true
  #preformatted = 0
  #quoteDepth = 0
  #href: string | null = null
  #linkText = ''

  write(text: string): void {
    if (this.#preformatted > 0) this.#writePreformatted(text)
    else this.#writeCollapsed(text)
  }

  #writeCollapsed(text: string): void {
    const words = /[^\S ]| {2}/.test(text) ? text.replace(/\s+/g, ' ') : text
    if (words.startsWith(' ')) this.#hasSpace = true
    const visible = words.trim()
    if (visible === '') return
    this.#writeWords(visible)
    this.#hasSpace = words.endsWith(' ')
  }

  openTag(name: string, href: string | null): void {
    if (name === 'br') this.#lineBreak()
    else if (name === 'hr') this.#rule()
    else if (name === 'li') this.#item()
    else if (name === 'td' || name === 'th') this.#hasSpace = true
    else if (name === 'a') this.#openLink(href)
    else this.#block(name)
    if (name === 'pre') this.#preformatted++
    if (name === 'blockquote') this.#quoteDepth++
  }

  closeTag(name: string): void {
    if (name === 'a') this.#closeLink()
    else this.#block(name)
    if (name === 'pre') this.#preformatted = Math.max(0, this.#preformatted - 1)
    if (name === 'blockquote') this.#quoteDepth = Math.max(0, this.#quoteDepth - 1)
  }

  /** The text. Its part from the HTML is never longer than the HTML, but ten quote marks before each character can be. */
  finish(maxChars: number): string {
    for (let at = this.#marks.pop(); at !== undefined && this.#length > maxChars; at = this.#marks.pop()) {
      this.#length -= this.#pieces[at]!.length
      this.#pieces[at] = ''
    }
    return this.#pieces.join('')
  }

  #push(piece: string): void {
    this.#pieces.push(piece)
    this.#length += piece.length
  }

  #pushMark(mark: string): void {
    this.#marks.push(this.#pieces.length)
    this.#push(mark)
  }

  #block(name: string): void {
    if (paragraphs.has(name)) this.#breaks = Math.max(this.#breaks, 2)
    else if (lines.has(name) || name === 'li') this.#breaks = Math.max(this.#breaks, 1)
  }

  #lineBreak(): void {
    this.#breaks = Math.min(this.#breaks + 1, 3)
  }

  #rule(): void {
    this.#breaks = Math.max(this.#breaks, 1)
    this.#startLine()
    this.#pushMark('--------')
    this.#breaks = 1
  }

  #item(): void {
    this.#breaks = Math.max(this.#breaks, 1)
    this.#writeWords('*')
    this.#hasSpace = true
  }

  #openLink(href: string | null): void {
    this.#href = href
    this.#linkText = ''
  }

  #closeLink(): void {
    const href = this.#href
    this.#href = null
    if (href === null || this.#linkText === '' || href.replace(/^mailto:/i, '') === this.#linkText) return
    this.#hasSpace = true
    this.#writeWords(`[${href}]`)
  }

  #writeWords(words: string): void {
    this.#startLine()
    if (this.#hasSpace && !this.#isAtLineStart) this.#push(' ')
    this.#push(words)
    if (this.#href !== null && this.#linkText.length < maxLinkText) this.#linkText += words
    this.#hasSpace = false
    this.#isAtLineStart = false
  }

  #writePreformatted(text: string): void {
    for (let start = 0; start <= text.length; ) {
      if (start > 0) this.#lineBreak()
      const found = text.indexOf('\n', start)
      const end = found < 0 ? text.length : found
      this.#writeLine(text.slice(start, end).trimEnd())
      start = end + 1
    }
  }

  #writeLine(words: string): void {
    if (words === '') return
    this.#startLine()
    this.#push(words)
    this.#isAtLineStart = false
  }

  #startLine(): void {
    const isFirst = this.#pieces.length === 0
    if (this.#breaks === 0 && !isFirst) return
    if (!isFirst) this.#push(breaks[this.#breaks]!)
    if (this.#quoteDepth > 0) this.#pushMark(quoteMarks[Math.min(this.#quoteDepth, deepestQuote)]!)
    this.#isAtLineStart = true
    this.#breaks = 0
  }
}

const breaks = ['', '\n', '\n\n', '\n\n\n']
const quoteMarks = Array.from({ length: deepestQuote + 1 }, (_, depth) => '> '.repeat(depth))
