// The style of a page: its rules, its `style` attributes and the presentational attributes of HTML.
import { decodeEntities } from '../html-entities.ts'
import type { HtmlToken } from '../html-tokens.ts'
import type { Length } from './css-length.ts'
import { readTokens } from './css-tokens.ts'
import type { Declaration, Specified } from './declaration.ts'
import { holdsMedia } from './media-query.ts'
import type { Element, Steps } from './selector.ts'
import { type MatchedRule, readInline, StyleSheet } from './style-sheet.ts'
import { initialVisibility, legacyColor, showsText, type Visibility, visibilityOf } from './visibility.ts'

/** Budget of compound matches and similar steps. A newsletter of 100 KB takes 20,000, and 10^6 take half a second. */
const maxSteps = 1_000_000
/** Cost of applying a matching rule, in steps. */
const stepsOfMatch = 4
const maxCached = 2_000
const none: readonly Declaration[] = []

/** Computes the visibility of a page's elements, one after the other. */
export class PageStyle {
  readonly #sheet: StyleSheet
  readonly #steps: Steps
  readonly #inline = new Map<string, Declaration[]>()
  readonly #initial: Visibility
  /** Keyed by the visibility around an element, then by the element's name and declarations. */
  readonly #known = new Map<Visibility, Map<string, Visibility>>()
  readonly #numbers = new Map<readonly Declaration[], number>()

  /** `unread` is the markup after the part that was tokenized. */
  constructor(tokens: HtmlToken[], unread: string) {
    this.#steps = { left: maxSteps, isFolded: !tokens.some(({ kind }) => kind === 'doctype') }
    this.#sheet = new StyleSheet(this.#steps)
    this.#sheet.isBeyond = /<style/i.test(unread)
    let templates = 0
    let fallbacks = 0
    const isInPicture = tokens.some((token) => token.kind === 'open' && token.name === 'svg')
    for (const token of tokens) {
      if (token.kind === 'open' && token.name === 'template') templates++
      else if (token.kind === 'close' && token.name === 'template') templates = Math.max(0, templates - 1)
      else if (token.kind === 'open' && token.name === 'noscript') fallbacks++
      else if (token.kind === 'close' && token.name === 'noscript') fallbacks = Math.max(0, fallbacks - 1)
      else if (token.kind === 'style' && templates === 0 && isForScreens(token.attributes)) {
        this.#sheet.add(token.css, { isUncertain: fallbacks > 0 })
        // Inside a picture, style is ordinary text, so character references and CDATA apply.
        if (isInPicture && /[&<]/.test(token.css))
          this.#sheet.add(decodeEntities(token.css.replace(/<!\[CDATA\[|\]\]>/g, '')), { isUncertain: true })
      }
    }
    const { initials } = this.#sheet
    this.#initial = initials.size === 0 ? initialVisibility : { ...initialVisibility, custom: initials }
  }

  /** The limits are exceeded, so hidden text can no longer be determined. */
  get isBeyond(): boolean {
    return this.#sheet.isBeyond || this.#steps.left <= 0
  }

  charge(steps: number): void {
    this.#steps.left -= steps
  }

  visibilityOf(element: Element, around: Visibility | null): Visibility {
    const outer = around ?? this.#initial
    const { name, attributes } = element
    const matched = this.#sheet.isEmpty ? [] : this.#sheet.rulesOf(element)
    this.#steps.left -= matched.length * stepsOfMatch
    const inline = this.#inlineOf(attributes.get('style'))
    const defaults = defaultsOf(element, outer)
    if (matched.length === 0 && inline.length === 0 && defaults === null && !outer.laysOutBoxes) return outer
    const certain = matched.filter(({ match }) => match === true)
    const visibility = this.#computed(outer, name, certain, inline, defaults)
    const link = name === 'body' ? legacyColor(attributes.get('link') ?? '') : null
    if (link) return { ...visibility, link }
    if (certain.length === matched.length) return visibility
    return (
      this.#hiddenBy(matched, (some) => visibilityOf(outer, name, inOrder(some, inline), defaults ?? {})) ??
      visibility
    )
  }

  /** One object for equal elements, so that their children are cached too. Newsletter rows take half the time. */
  #computed(
    outer: Visibility,
    name: string,
    matched: MatchedRule[],
    inline: readonly Declaration[],
    defaults: Specified | null,
  ): Visibility {
    const compute = () => visibilityOf(outer, name, inOrder(matched, inline), defaults ?? {})
    if (defaults !== null) return compute()
    let key = `${name} ${this.#numberOf(inline)}`
    for (const { rule } of matched) key += ` ${this.#numberOf(rule.declarations)}`
    let alike = this.#known.get(outer)
    const known = alike?.get(key)
    if (known !== undefined) return known
    const visibility = compute()
    if (this.#known.size >= maxCached) return visibility
    if (alike === undefined) this.#known.set(outer, (alike = new Map()))
    if (alike.size < maxCached) alike.set(key, visibility)
    return visibility
  }

  #numberOf(declarations: readonly Declaration[]): number {
    const known = this.#numbers.get(declarations)
    if (known !== undefined) return known
    this.#numbers.set(declarations, this.#numbers.size)
    return this.#numbers.size - 1
  }

  /** Rules with an unknown match count if they hide text, each alone or all together. */
  #hiddenBy(matched: MatchedRule[], seenWith: (some: MatchedRule[]) => Visibility): Visibility | null {
    const isCertain = ({ match }: MatchedRule) => match === true
    const combinations = [
      matched,
      ...matched
        .filter((one) => !isCertain(one))
        .map((maybe) => matched.filter((one) => one === maybe || isCertain(one))),
    ]
    for (const some of combinations) {
      this.#steps.left -= some.length * stepsOfMatch
      const visibility = seenWith(some)
      if (!showsText(visibility)) return visibility
      if (this.#steps.left <= 0) break
    }
    return null
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

/** CSS Cascading and Inheritance Level 5, 6: declarations in ascending order of precedence. */
function inOrder(matched: MatchedRule[], inline: readonly Declaration[]): readonly Declaration[] {
  const rules = matched.flatMap(({ rule }) => rule.declarations)
  const isAnyImportant = ({ isImportant }: Declaration) => isImportant
  if (!rules.some(isAnyImportant) && !inline.some(isAnyImportant))
    return rules.length === 0 ? inline : [...rules, ...inline]
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

/** Defaults from the element's name and HTML attributes, weaker than all style. Null if it has none. */
function defaultsOf(element: Element, around: Visibility): Specified | null {
  const { name, attributes } = element
  if (attributes.size === 0) return elementDefaults(element)
  const defaults: Specified = { ...elementDefaults(element) }
  if (name === 'dialog' && attributes.has('open')) delete defaults.display
  if (attributes.has('hidden') || attributes.has('popover')) defaults.display = 'none'
  const size = name === 'font' ? fontSizeOf(attributes.get('size')) : null
  if (size) defaults.fontSize = size
  if (name === 'a' && attributes.has('href')) defaults.color = around.link
  if (name === 'bdo') defaults.overridesDirection = true
  const ground = grounded.has(name) ? legacyColor(attributes.get('bgcolor') ?? '') : null
  if (ground) defaults.ground = ground
  const written =
    name === 'font' ? attributes.get('color') : name === 'body' ? attributes.get('text') : undefined
  const color = written === undefined ? null : legacyColor(written)
  if (color) defaults.color = color
  for (const _ in defaults) return defaults
  return null
}

const marked: Specified = {
  ground: { red: 255, green: 255, blue: 0, alpha: 1 },
  color: { red: 0, green: 0, blue: 0, alpha: 1 },
}
const hidden: Specified = { display: 'none' }
/** Hidden in a closed `<details>`, whatever the element declares. */
const folded: Specified = { isFolded: true }
/** Chromium's style for a control, whatever surrounds it. */
const control: Specified = {
  ground: { red: 239, green: 239, blue: 239, alpha: 1 },
  color: { red: 0, green: 0, blue: 0, alpha: 1 },
  fontSize: { px: 13, em: 0, share: 0 },
  indent: { px: 0, em: 0, share: 0 },
}
/** HTML, 15.3.4: pixels for `<font size>` 1 to 7. */
const fontSizes = [10, 13, 16, 18, 24, 32, 48]

function fontSizeOf(written: string | undefined): Length | null {
  const [, sign, digits] = /^\s*([+-]?)(\d+)/.exec(written ?? '') ?? []
  if (digits === undefined) return null
  const given = sign === '+' ? 3 + Number(digits) : sign === '-' ? 3 - Number(digits) : Number(digits)
  return { px: fontSizes[Math.min(7, Math.max(1, given)) - 1]!, em: 0, share: 0 }
}

const maxScanned = 100

/** Only the first `<summary>` acts as the summary. Also true beyond 100 siblings. */
function hasSummaryBefore(previous: Element | null): boolean {
  let at = 0
  for (let other = previous; other !== null; other = other.previous, at++)
    if (other.name === 'summary' || at > maxScanned) return true
  return false
}

function elementDefaults({ name, parent, previous }: Element): Specified | null {
  if (name === 'dialog') return hidden
  if (name === 'mark') return marked
  if (name === 'button' || name === 'select') return control
  if (parent?.name !== 'details' || parent.attributes.has('open')) return null
  return name === 'summary' && !hasSummaryBefore(previous) ? null : folded
}
