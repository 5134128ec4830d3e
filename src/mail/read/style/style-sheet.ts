// The rules of a page's <style> that can hide text, indexed by the id, class or element name of their last compound.
import { type CssToken, indexAfter, kinds, readTokens, skipSpace, writtenValue } from './css-tokens.ts'
import { type Declaration, readDeclaration } from './declaration.ts'
import { holdsMedia } from './media-query.ts'
import {
  classesOf,
  type Element,
  type Match,
  matchSelector,
  readSelectors,
  type Selector,
  type Steps,
} from './selector.ts'

export interface Rule {
  selector: Selector
  declarations: Declaration[]
  /** Later rules win over earlier ones of the same specificity. */
  order: number
  /** Rules in a layer lose to rules outside of layers. */
  isLayered: boolean
  /** The rule depends on a condition that is not computed here, such as `@container` or the order of layers. */
  isUncertain: boolean
}

export interface MatchedRule {
  rule: Rule
  match: Match
}

/** Up to this many characters of style are read per page: 40 times as many as the largest newsletter known to us has. */
export const maxStyle = 1 << 18
const maxRules = 10_000
const deepest = 8

/** The rules of a page, added one `<style>` at a time. */
export class StyleSheet {
  /** The page has more style than is read, so its hidden text cannot be determined. */
  isBeyond = false
  readonly #byName = new Map<string, Rule[]>()
  readonly #steps: Steps
  #rules = 0
  #length = 0

  constructor(steps: Steps) {
    this.#steps = steps
  }

  get isEmpty(): boolean {
    return this.#rules === 0
  }

  /** Initial values that `@property` gives to custom properties. */
  readonly initials = new Map<string, string>()

  /** `isUncertain`: it is unknown whether this style applies. */
  add(css: string, { isUncertain }: { isUncertain: boolean }): void {
    this.#length += css.length
    if (this.#length > maxStyle) this.isBeyond = true
    else {
      const tokens = readTokens(css)
      this.#readRules(tokens, 0, tokens.length, {
        depth: 0,
        isLayered: false,
        isUncertain,
        nested: null,
        declarations: [],
      })
    }
  }

  /** The rules that match the element, in ascending order of precedence. */
  rulesOf(element: Element): MatchedRule[] {
    const keys = ['*', element.name]
    const id = element.attributes.get('id')
    if (id !== undefined) keys.push(`#${this.#fold(id)}`)
    if (element.attributes.has('class'))
      for (const name of classesOf(element, this.#steps)) keys.push(`.${name}`)
    const matched: MatchedRule[] = []
    for (const key of keys) {
      for (const rule of this.#byName.get(key) ?? []) {
        const match = matchSelector(rule.selector, element, this.#steps)
        if (match !== false) matched.push({ rule, match: rule.isUncertain ? 'unknown' : match })
      }
    }
    return matched.sort(byWeight)
  }

  /** `@property --name { initial-value: …; }`. */
  #readProperty(tokens: CssToken[], from: number, open: number, end: number): void {
    const written = /\binitial-value ?: ?([^;]*)/.exec(writtenValue(tokens, open + 1, end))
    if (written) this.initials.set(writtenValue(tokens, from, open), written[1]!)
  }

  #fold(name: string): string {
    return this.#steps.isFolded ? name.toLowerCase() : name
  }

  /** CSS Syntax Level 3, 5.4.4: reads rules and, inside a rule, declarations. */
  #readRules(tokens: CssToken[], from: number, to: number, block: Block): void {
    if (block.depth > deepest) this.isBeyond = true
    for (let at = from; at < to && !this.isBeyond; ) {
      const { kind } = tokens[at]!
      const isFiller = kind === kinds.WhiteSpace || kind === kinds.Semicolon
      if (isFiller || kind === kinds.CDO || kind === kinds.CDC) at++
      else if (kind === kinds.AtKeyword) at = this.#readAtRule(tokens, at, to, block)
      else
        at = (block.nested && declarationEnd(tokens, at, to, block)) ?? this.#readRule(tokens, at, to, block)
    }
  }

  #readRule(tokens: CssToken[], from: number, to: number, block: Block): number {
    const open = preludeEnd(tokens, from, to, block.nested === null ? blocks : statements)
    if (open >= to || tokens[open]!.kind !== kinds.LeftCurlyBracket) return open + 1
    const end = Math.min(tokens[open]!.close, to)
    const selectors = readSelectors(tokens, from, open, block.nested)
    if (selectors !== null) this.#readBlock(tokens, open + 1, end, { ...block, nested: selectors })
    return end + 1
  }

  #readBlock(tokens: CssToken[], from: number, to: number, outer: Block): void {
    const block = { ...outer, depth: outer.depth + 1, declarations: [] }
    const order = this.#rules
    this.#readRules(tokens, from, to, block)
    if (block.declarations.length === 0) return
    const { declarations, isLayered, isUncertain } = block
    for (const selector of block.nested ?? [])
      this.#addRule({ selector, declarations, order, isLayered, isUncertain })
  }

  #addRule(rule: Rule): void {
    if (++this.#rules > maxRules) this.isBeyond = true
    const key = this.#keyOf(rule.selector)
    const rules = this.#byName.get(key)
    if (rules) rules.push(rule)
    else this.#byName.set(key, [rule])
  }

  #keyOf({ name, tests }: Selector): string {
    for (const test of tests) {
      if (test.on === 'id') return `#${this.#fold(test.name)}`
      if (test.on === 'class') return `.${this.#fold(test.name)}`
    }
    return name ?? '*'
  }

  #readAtRule(tokens: CssToken[], from: number, to: number, block: Block): number {
    const open = preludeEnd(tokens, from + 1, to, statements)
    if (open >= to || tokens[open]!.kind !== kinds.LeftCurlyBracket) return open + 1
    const end = Math.min(tokens[open]!.close, to)
    const name = tokens[from]!.text.toLowerCase()
    if (name === 'property') this.#readProperty(tokens, from + 1, open, end)
    const inner = {
      ...block,
      isLayered: block.isLayered || name === 'layer',
      isUncertain:
        block.isUncertain || (uncertain.has(name) && !isSupported(writtenValue(tokens, from + 1, open))),
    }
    const isTaken = uncertain.has(name) || (name === 'media' && holdsMedia(tokens, from + 1, open))
    if (isTaken && block.nested === null)
      this.#readRules(tokens, open + 1, end, { ...inner, depth: block.depth + 1 })
    else if (isTaken) this.#readBlock(tokens, open + 1, end, inner)
    return end + 1
  }
}

/** At-rules whose conditions are not computed. Their rules count if they hide text. */
const uncertain = new Set(['layer', 'supports', 'container', 'scope', 'starting-style'])

/** Whether the `@supports` condition is a single declaration known here. All other conditions stay uncertain. */
function isSupported(condition: string): boolean {
  const [, name, value] = /^\( ?([a-z-]+) ?: ?([^()]+)\)$/.exec(condition) ?? []
  return name !== undefined && readDeclaration(name, value!.trim()) !== null
}

interface Block {
  depth: number
  isLayered: boolean
  isUncertain: boolean
  /** The selectors of the rule around this block, or null outside of rules. */
  nested: Selector[] | null
  declarations: Declaration[]
}

function byWeight({ rule: one }: MatchedRule, { rule: other }: MatchedRule): number {
  if (one.isLayered !== other.isLayered) return one.isLayered ? -1 : 1
  return one.selector.specificity - other.selector.specificity || one.order - other.order
}

const blocks = [kinds.LeftCurlyBracket]
/** A prelude ends at its block or, without a block, at `;`. */
const statements = [kinds.LeftCurlyBracket, kinds.Semicolon]

/** Index of the first token of the kinds in `ends`, or `to` if there is none. */
function preludeEnd(tokens: CssToken[], from: number, to: number, ends: readonly number[]): number {
  let at = from
  while (at < to && !ends.includes(tokens[at]!.kind)) at = indexAfter(tokens[at]!, at, to)
  return at
}

/** Reads the declaration at `from` into the block and returns its end. Null if `from` begins a rule instead. */
function declarationEnd(tokens: CssToken[], from: number, to: number, block: Block): number | null {
  if (tokens[from]!.kind !== kinds.Ident) return null
  const colon = skipSpace(tokens, from + 1, to)
  if (colon >= to || tokens[colon]!.kind !== kinds.Colon) return null
  const isCustom = tokens[from]!.text.startsWith('--')
  let end = colon + 1
  for (; end < to && tokens[end]!.kind !== kinds.Semicolon; end = indexAfter(tokens[end]!, end, to))
    if (tokens[end]!.kind === kinds.LeftCurlyBracket && !isCustom) return null
  const declaration = readDeclaration(tokens[from]!.text, writtenValue(tokens, colon + 1, end))
  if (declaration) block.declarations.push(declaration)
  return end + 1
}

/** The declarations of a `style` attribute. */
export function readInline(css: string): Declaration[] {
  const tokens = readTokens(css)
  const block: Block = { depth: 0, isLayered: false, isUncertain: false, nested: null, declarations: [] }
  for (let at = 0; at < tokens.length; ) {
    const end = declarationEnd(tokens, at, tokens.length, block)
    at = end ?? skipDeclaration(tokens, at)
  }
  return block.declarations
}

/** Skips a construct that is no declaration. It ends at the next `;` or with its block, as a nested rule does. */
function skipDeclaration(tokens: CssToken[], from: number): number {
  const { kind } = tokens[from]!
  if (kind === kinds.WhiteSpace || kind === kinds.Semicolon) return from + 1
  const end = preludeEnd(tokens, from, tokens.length, statements)
  return end < tokens.length ? indexAfter(tokens[end]!, end, tokens.length) : end
}
