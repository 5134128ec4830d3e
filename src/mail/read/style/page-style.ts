// The style of a page: its rules, the `style` attributes and the attributes that HTML itself gives a meaning.
import type { HtmlToken } from '../html-tokens.ts'
import { readTokens } from './css-tokens.ts'
import type { Declaration, Specified } from './declaration.ts'
import { holdsMedia } from './media-query.ts'
import type { Element, Steps } from './selector.ts'
import { type MatchedRule, readInline, StyleSheet } from './style-sheet.ts'
import { initialVisibility, legacyColor, showsText, type Visibility, visibilityOf } from './visibility.ts'

/** Matches of a compound, and the like; a newsletter of 100 KB takes 20,000. 10^6 take half a second. */
const maxSteps = 1_000_000
/** What it costs to apply a rule that matches. */
const stepsOfMatch = 4
const maxCached = 2_000
const none: readonly Declaration[] = []

/** Answers for one element after the other what of it can be seen. */
export class PageStyle {
  readonly #sheet: StyleSheet
  readonly #steps: Steps
  readonly #inline = new Map<string, Declaration[]>()

  /** `unread` is the markup behind that of the tokens. */
  constructor(tokens: HtmlToken[], unread: string) {
    this.#steps = { left: maxSteps, isFolded: !tokens.some(({ kind }) => kind === 'doctype') }
    this.#sheet = new StyleSheet(this.#steps)
    this.#sheet.isBeyond = /<style/i.test(unread)
    let templates = 0
    for (const token of tokens) {
      if (token.kind === 'open' && token.name === 'template') templates++
      else if (token.kind === 'close' && token.name === 'template') templates = Math.max(0, templates - 1)
      else if (token.kind === 'style' && templates === 0 && isForScreens(token.attributes))
        this.#sheet.add(token.css)
    }
  }

  /** What is hidden cannot be told any more. */
  get isBeyond(): boolean {
    return this.#sheet.isBeyond || this.#steps.left <= 0
  }

  charge(steps: number): void {
    this.#steps.left -= steps
  }

  visibilityOf(element: Element, around: Visibility | null): Visibility {
    const outer = around ?? initialVisibility
    const { name, attributes } = element
    const matched = this.#sheet.isEmpty ? [] : this.#sheet.rulesOf(element)
    this.#steps.left -= matched.length * stepsOfMatch
    const inline = this.#inlineOf(attributes.get('style'))
    const defaults = defaultsOf(element, outer)
    if (matched.length === 0 && inline.length === 0 && defaults === null) return outer
    const certain = matched.filter(({ match }) => match === true)
    const visibility = visibilityOf(outer, name, inOrder(certain, inline), defaults ?? {})
    const link = name === 'body' ? legacyColor(attributes.get('link') ?? '') : null
    if (link) visibility.link = link
    if (certain.length === matched.length) return visibility
    // Rules that may match count if they hide text.
    const hidden = visibilityOf(outer, name, inOrder(matched, inline), defaults ?? {})
    return showsText(hidden) ? visibility : hidden
  }

  #inlineOf(css: string | undefined): readonly Declaration[] {
    if (css === undefined || css === '') return none
    const known = this.#inline.get(css)
    if (known !== undefined) return known
    const declarations = readInline(css)
    if (this.#inline.size < maxCached) this.#inline.set(css, declarations)
    return declarations
  }
}

function isForScreens(attributes: ReadonlyMap<string, string>): boolean {
  const type = attributes.get('type')?.trim().toLowerCase() ?? ''
  const media = readTokens(attributes.get('media') ?? '')
  return (type === '' || type === 'text/css') && holdsMedia(media, 0, media.length)
}

/** CSS Cascading and Inheritance Level 5, 6: those that win last. */
function inOrder(matched: MatchedRule[], inline: readonly Declaration[]): readonly Declaration[] {
  if (matched.length === 0 && !inline.some(({ isImportant }) => isImportant)) return inline
  const rules = matched.flatMap(({ rule }) => rule.declarations)
  // Among important declarations the layered ones win (CSS Cascade 5, 6.1).
  const layeredLast = matched.toSorted(
    (one, other) => Number(one.rule.isLayered) - Number(other.rule.isLayered),
  )
  return [
    ...rules.filter(({ isImportant }) => !isImportant),
    ...inline.filter(({ isImportant }) => !isImportant),
    ...layeredLast.flatMap(({ rule }) => rule.declarations).filter(({ isImportant }) => isImportant),
    ...inline.filter(({ isImportant }) => isImportant),
  ]
}

const grounded = new Set(['body', 'table', 'tbody', 'thead', 'tfoot', 'tr', 'td', 'th'])

/** What HTML says of the element, weaker than all style; null if nothing. */
function defaultsOf({ name, attributes, parent }: Element, around: Visibility): Specified | null {
  if (attributes.size === 0) return elementDefaults(name, parent)
  const defaults: Specified = { ...elementDefaults(name, parent) }
  if (attributes.has('hidden') || attributes.has('popover')) defaults.display = 'none'
  if (name === 'dialog' && attributes.has('open')) delete defaults.display
  if (name === 'a' && attributes.has('href')) defaults.color = around.link
  if (name === 'bdo') defaults.overridesDirection = true
  const ground = grounded.has(name) ? legacyColor(attributes.get('bgcolor') ?? '') : null
  if (ground) defaults.ground = ground
  const written =
    name === 'font' ? attributes.get('color') : name === 'body' ? attributes.get('text') : undefined
  const color = written === undefined ? null : legacyColor(written)
  if (color) defaults.color = color
  return defaults
}

const marked: Specified = {
  ground: { red: 255, green: 255, blue: 0, alpha: 1 },
  color: { red: 0, green: 0, blue: 0, alpha: 1 },
}
const hidden: Specified = { display: 'none' }

function elementDefaults(name: string, parent: Element | null): Specified | null {
  if (name === 'dialog') return hidden
  if (name === 'mark') return marked
  return parent?.name === 'details' && name !== 'summary' && !parent.attributes.has('open') ? hidden : null
}
