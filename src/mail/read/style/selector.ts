// CSS selectors: reads them from tokens and matches them against the open elements, counting each step.
import { type CssToken, indexAfter, kinds, skipSpace, splitAtCommas, writtenValue } from './css-tokens.ts'

/** An element as selectors see it. */
export interface Element {
  name: string
  attributes: ReadonlyMap<string, string>
  parent: Element | null
  /** The preceding sibling. */
  previous: Element | null
  /** Position among its siblings, from 1. */
  index: number
  classes?: Set<string>
}

/** Budget and mode for matching selectors in one page. */
export interface Steps {
  /** Matching stops for good when no step is left. */
  left: number
  /** True for a page without a doctype: browsers then compare classes and ids case-insensitively. */
  isFolded: boolean
}

type Test =
  | { on: 'class' | 'id'; name: string }
  | { on: 'attribute'; name: string; operator: string; value: string; isFolded: boolean }
  | { on: 'list'; list: Selector[]; isNegated: boolean }
  | { on: 'index'; step: number; offset: number }
  | { on: 'link' | 'root' | 'never' | 'unknown' }

/** The last compound of a selector, linked to the compounds on its left. */
export interface Selector {
  /** Null matches any element name. */
  name: string | null
  tests: Test[]
  combinator: string
  left: Selector | null
  /** Selectors Level 4, 17: ids, then classes, then types. */
  specificity: number
}

/** Unknown: the match depends on the rest of the page, as for `:last-child`. */
export type Match = boolean | 'unknown'

const deepest = 4
const maxCompounds = 32
const idWeight = 1 << 20
const classWeight = 1 << 10

interface Context {
  /** The selectors that `&` refers to. */
  nested: Selector[] | null
  depth: number
  /** A pseudo-class was read that is unknown here. Browsers that do not know it either drop the rule. */
  isUncertain: boolean
}

/** The selectors between commas. Null if one of them is invalid, because that invalidates the whole list. */
export function readSelectors(
  tokens: CssToken[],
  from: number,
  to: number,
  nested: Selector[] | null,
): Selector[] | null {
  const list: Selector[] = []
  const context: Context = { nested, depth: 0, isUncertain: false }
  for (const [start, end] of splitAtCommas(tokens, from, to)) {
    const selector = readSelector(tokens, start, end, context)
    if (selector === null) return null
    list.push(selector)
  }
  if (context.isUncertain) for (const { tests } of list) tests.push({ on: 'unknown' })
  return list
}

function readSelector(tokens: CssToken[], from: number, to: number, context: Context): Selector | null {
  let at = skipSpace(tokens, from, to)
  const { nested } = context
  const isRelative = nested !== null && !tokens.slice(at, to).some(({ text }) => text === '&')
  let left: Selector | null = isRelative ? parentOf(nested) : null
  let combinator = ' '
  for (let compounds = 0; at < to; compounds++) {
    const written = combinatorAt(tokens, at)
    if (written !== null && (left === null || compounds > 0 || !isRelative)) return null
    if (written !== null) {
      combinator = written
      at = skipSpace(tokens, at + 1, to)
    }
    const compound: Selector = {
      name: null,
      tests: [],
      combinator,
      left,
      specificity: left?.specificity ?? 0,
    }
    const end = readCompound(tokens, at, to, compound, context)
    if (end === null || end === at || compounds > maxCompounds) return null
    left = compound
    at = skipSpace(tokens, end, to)
    if (at === to) return compound
    const next = combinatorAt(tokens, at)
    if (next === null && at === end) return null
    combinator = next ?? ' '
    if (next !== null) at = skipSpace(tokens, at + 1, to)
    if (at === to) return null
  }
  return null
}

function parentOf(nested: Selector[]): Selector {
  const specificity = Math.max(...nested.map((selector) => selector.specificity))
  return {
    name: null,
    tests: [{ on: 'list', list: nested, isNegated: false }],
    combinator: ' ',
    left: null,
    specificity,
  }
}

function combinatorAt(tokens: CssToken[], at: number): string | null {
  const token = tokens[at]
  return token?.kind === kinds.Delim && '>+~'.includes(token.text) ? token.text : null
}

/** Adds the tests of the compound at `from`. Returns the index of its end, or null if it is invalid. */
function readCompound(
  tokens: CssToken[],
  from: number,
  to: number,
  compound: Selector,
  context: Context,
): number | null {
  let at = skipNamespace(tokens, from, to, compound)
  const first = at
  for (; at < to; ) {
    const token = tokens[at]!
    const next = indexAfter(token, at, to)
    const { kind, text } = token
    if (kind === kinds.Ident && at === first) {
      compound.name = text.toLowerCase()
      compound.specificity += 1
    } else if (kind === kinds.Hash) add(compound, { on: 'id', name: text }, idWeight)
    else if (kind === kinds.Delim && text === '*' && at === first) compound.name = null
    else if (kind === kinds.Delim && text === '&') {
      if (context.nested === null) add(compound, { on: 'root' }, 0)
      else add(compound, ...weighed({ on: 'list', list: context.nested, isNegated: false }))
    } else if (kind === kinds.Delim && text === '.' && tokens[at + 1]?.kind === kinds.Ident && at + 1 < to) {
      add(compound, { on: 'class', name: tokens[at + 1]!.text }, classWeight)
      at += 2
      continue
    } else if (kind === kinds.LeftSquareBracket) {
      const test = readAttribute(tokens, at + 1, Math.min(token.close, to))
      if (test === null) return null
      add(compound, test, classWeight)
    } else if (kind === kinds.Colon) {
      const end = readPseudo(tokens, at + 1, to, compound, context)
      if (end === null) return null
      at = end
      continue
    } else return kind === kinds.WhiteSpace || combinatorAt(tokens, at) !== null ? at : null
    at = next
  }
  return at
}

/** `*|` matches any namespace. A mail cannot name the namespace of HTML elements, so any other prefix never matches. */
function skipNamespace(tokens: CssToken[], from: number, to: number, compound: Selector): number {
  const isBar = (at: number) => at < to && tokens[at]!.kind === kinds.Delim && tokens[at]!.text === '|'
  const at = isBar(from) ? from : from + 1
  const isPrefix = at === from || tokens[from]!.kind === kinds.Ident || tokens[from]!.text === '*'
  if (!isBar(at) || !isPrefix) return from
  if (at === from || tokens[from]!.text !== '*') compound.tests.push({ on: 'never' })
  return at + 1
}

function add(compound: Selector, test: Test, weight: number): void {
  compound.tests.push(test)
  compound.specificity += weight
}

function weighed(test: Extract<Test, { on: 'list' }>): [Test, number] {
  return [test, Math.max(0, ...test.list.map(({ specificity }) => specificity))]
}

// HTML, 4.16.2: the values of these attributes compare case-insensitively.
const folded = new Set(
  'accept align alink axis bgcolor charset checked clear color compact dir direction disabled enctype face frame hreflang http-equiv lang language link media method multiple nohref noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target text type valign valuetype vlink'.split(
    ' ',
  ),
)

function readAttribute(tokens: CssToken[], from: number, to: number): Test | null {
  const start = skipSpace(tokens, from, to)
  const isAnyNamespace = tokens[start]?.text === '*' && tokens[start + 1]?.text === '|'
  const at = isAnyNamespace ? start + 2 : tokens[start]?.text === '|' ? start + 1 : start
  if (at >= to || tokens[at]!.kind !== kinds.Ident) return null
  const name = tokens[at]!.text.toLowerCase()
  const written = tokens.slice(at + 1, to).filter(({ kind }) => kind !== kinds.WhiteSpace)
  if (written.length === 0) return { on: 'attribute', name, operator: '', value: '', isFolded: false }
  const isCompound = written[0]!.text !== '='
  const operator = isCompound ? `${written[0]!.text}${written[1]?.text}` : '='
  const [value, flag, ...rest] = written.slice(isCompound ? 2 : 1)
  if (!/^[~|^$*]?=$/.test(operator) || value === undefined || rest.length > 0) return null
  if (value.kind !== kinds.Ident && value.kind !== kinds.String) return null
  const isFolded = flag === undefined ? folded.has(name) : flag.text.toLowerCase() === 'i'
  return {
    on: 'attribute',
    name,
    operator,
    value: isFolded ? value.text.toLowerCase() : value.text,
    isFolded,
  }
}

const never = new Set(
  'hover active focus focus-visible focus-within visited target target-within checked indeterminate placeholder-shown autofill fullscreen modal popover-open picture-in-picture invalid user-invalid user-valid in-range out-of-range current past future playing local-link host defined-not'.split(
    ' ',
  ),
)
const unknown = new Set(
  'last-child last-of-type first-of-type only-child only-of-type empty enabled disabled required optional read-only read-write valid default paused muted defined open dir lang nth-last-child nth-of-type nth-last-of-type has'.split(
    ' ',
  ),
)

function readPseudo(
  tokens: CssToken[],
  at: number,
  to: number,
  compound: Selector,
  context: Context,
): number | null {
  const token = tokens[at]
  if (token === undefined || at >= to) return null
  const name = token.text.toLowerCase()
  // A pseudo-element, also in the one-colon form of CSS 2. Its declarations do not apply to the element.
  if (token.kind === kinds.Colon || /^(?:before|after|first-line|first-letter)$/.test(name)) {
    const isLine = name === 'first-line' || tokens[at + 1]?.text === 'first-line'
    add(compound, { on: isLine ? 'unknown' : 'never' }, 0)
    return token.kind === kinds.Colon ? indexAfter(tokens[at + 1] ?? token, at + 1, to) : at + 1
  }
  if (token.kind === kinds.Ident) {
    const test = namedTest(name)
    if (test === null) context.isUncertain = true
    add(compound, test ?? { on: 'unknown' }, classWeight)
    return at + 1
  }
  if (token.kind !== kinds.Function || context.depth >= deepest) return null
  const end = Math.min(token.close, to)
  const test = readFunction(name, tokens, at + 1, end, context)
  if (test === null) return null
  add(compound, ...test)
  return Math.min(end + 1, to)
}

function namedTest(name: string): Test | null {
  if (name === 'root' || name === 'scope') return { on: 'root' }
  if (name === 'first-child') return { on: 'index', step: 0, offset: 1 }
  if (name === 'link' || name === 'any-link') return { on: 'link' }
  if (never.has(name)) return { on: 'never' }
  return unknown.has(name) ? { on: 'unknown' } : null
}

function readFunction(
  name: string,
  tokens: CssToken[],
  from: number,
  to: number,
  context: Context,
): [Test, number] | null {
  if (['is', 'where', 'not', 'matches', '-webkit-any'].includes(name)) {
    const inner = { ...context, depth: context.depth + 1 }
    const list = splitAtCommas(tokens, from, to).map(([start, end]) =>
      readSelector(tokens, start, end, { ...inner, nested: null }),
    )
    const right = list.filter((selector) => selector !== null)
    if (name === 'not' && right.length < list.length) return null
    const [test, weight] = weighed({ on: 'list', list: right, isNegated: name === 'not' })
    return [test, name === 'where' ? 0 : weight]
  }
  if (name === 'nth-child') return [readIndex(writtenValue(tokens, from, to)), classWeight]
  if (!unknown.has(name)) context.isUncertain = true
  return [{ on: 'unknown' }, classWeight]
}

/** CSS Syntax Level 3, 6: `2n+1`, `odd`, `3`. */
function readIndex(written: string): Test {
  const value = written.replace(/\s/g, '')
  if (value === 'odd') return { on: 'index', step: 2, offset: 1 }
  if (value === 'even') return { on: 'index', step: 2, offset: 0 }
  const match = /^([+-]?\d{0,6})(n)?([+-]\d{1,6})?$/.exec(value)
  if (match === null) return { on: 'unknown' }
  const [, first, n, offset] = match
  if (n === undefined) return { on: 'index', step: 0, offset: Number(first) }
  const step = /\d/.test(first!) ? Number(first) : Number(`${first}1`)
  return { on: 'index', step, offset: Number(offset ?? 0) }
}

/** Matches the selector against the element. False once no steps are left. */
export function matchSelector(selector: Selector, element: Element, steps: Steps): Match {
  if (steps.left <= 0) return false
  steps.left--
  const own = matchCompound(selector, element, steps)
  if (own === false || selector.left === null) return own
  const isDirect = selector.combinator === '>' || selector.combinator === '+'
  const isSibling = selector.combinator === '+' || selector.combinator === '~'
  let best: Match = false
  let other = isSibling ? element.previous : element.parent
  while (other !== null && steps.left > 0) {
    const found = matchSelector(selector.left, other, steps)
    if (found === true) return own
    if (found === 'unknown') best = 'unknown'
    if (isDirect) break
    other = isSibling ? other.previous : other.parent
  }
  return best
}

function matchCompound({ name, tests }: Selector, element: Element, steps: Steps): Match {
  if (name !== null && name !== element.name) return false
  let result: Match = true
  for (const test of tests) {
    steps.left--
    const matched = matchTest(test, element, steps)
    if (matched === false) return false
    if (matched === 'unknown') result = 'unknown'
  }
  return result
}

function matchTest(test: Test, element: Element, steps: Steps): Match {
  const { attributes } = element
  if (test.on === 'unknown') return 'unknown'
  if (test.on === 'list') return matchList(test, element, steps)
  if (test.on === 'class') return classesOf(element, steps).has(fold(test.name, steps))
  if (test.on === 'id') return fold(attributes.get('id') ?? '', steps) === fold(test.name, steps)
  if (test.on === 'attribute') {
    const given = attributes.get(test.name)
    steps.left -= (given?.length ?? 0) >> (test.operator === '~=' ? 0 : 4)
    return matchesAttribute(test, given)
  }
  if (test.on === 'link') return element.name === 'a' && attributes.has('href')
  if (test.on === 'root') return element.parent === null
  return test.on === 'index' && matchesIndex(test, element.index)
}

function matchesIndex({ step, offset }: { step: number; offset: number }, index: number): boolean {
  const distance = index - offset
  return step === 0 ? distance === 0 : distance % step === 0 && distance / step >= 0
}

const fold = (name: string, { isFolded }: Steps) => (isFolded ? name.toLowerCase() : name)

export function classesOf(element: Element, steps: Steps): Set<string> {
  const written = () => fold(element.attributes.get('class') ?? '', steps).split(/[ \t\n\f\r]+/)
  element.classes ??= new Set(written())
  return element.classes
}

function matchList(
  { list, isNegated }: Extract<Test, { on: 'list' }>,
  element: Element,
  steps: Steps,
): Match {
  let result: Match = false
  for (const selector of list) {
    const matched = matchSelector(selector, element, steps)
    if (matched === true) return !isNegated
    if (matched === 'unknown') result = 'unknown'
  }
  if (result === 'unknown') return 'unknown'
  return isNegated
}

function matchesAttribute(
  { operator, value, isFolded }: Extract<Test, { on: 'attribute' }>,
  given: string | undefined,
): boolean {
  if (given === undefined) return false
  const actual = isFolded ? given.toLowerCase() : given
  if (operator === '') return true
  if (operator === '=') return actual === value
  if (operator === '|=') return actual === value || actual.startsWith(`${value}-`)
  if (value === '') return false
  if (operator === '~=') return actual.split(/\s+/).includes(value)
  if (operator === '^=') return actual.startsWith(value)
  return operator === '$=' ? actual.endsWith(value) : actual.includes(value)
}
