// Whether a media query holds for a mail reader with a light screen of 1024 by 768 pixels and a mouse.

import { parseLength, pixelsOf } from './css-length.ts'
import { type CssToken, indexAfter, kinds, skipSpace, splitAtCommas, writtenValue } from './css-tokens.ts'

const widthPx = 1024
const heightPx = 768
const deepest = 8

const facts: Record<string, string[]> = {
  'prefers-color-scheme': ['light'],
  'prefers-reduced-motion': ['no-preference'],
  'prefers-contrast': ['no-preference'],
  'prefers-reduced-data': ['no-preference'],
  'forced-colors': ['none'],
  'inverted-colors': ['none'],
  scripting: ['none'],
  orientation: ['landscape'],
  hover: ['hover'],
  'any-hover': ['hover'],
  pointer: ['fine'],
  'any-pointer': ['fine'],
  update: ['fast'],
  'display-mode': ['browser'],
  grid: ['0'],
  monochrome: ['0'],
  'color-index': ['0'],
  'color-gamut': ['srgb'],
  'dynamic-range': ['standard'],
  'video-dynamic-range': ['standard'],
  'overflow-block': ['scroll'],
  'overflow-inline': ['scroll'],
}

/** Media Queries Level 4: true if any query between commas holds. Unknown queries do not hold. */
export function holdsMedia(tokens: CssToken[], from: number, to: number): boolean {
  if (skipSpace(tokens, from, to) === to) return true
  return splitAtCommas(tokens, from, to).some(([start, end]) => holdsQuery(tokens, start, end))
}

function holdsQuery(tokens: CssToken[], from: number, to: number): boolean {
  const first = skipSpace(tokens, from, to)
  let at = first
  const word = () => (tokens[at]?.kind === kinds.Ident && at < to ? tokens[at]!.text.toLowerCase() : null)
  const prefix = word()
  if (prefix === 'only' || prefix === 'not') at = skipSpace(tokens, at + 1, to)
  const type = word()
  if (type === null) return holdsCondition(tokens, first, to, 0) === true
  at = skipSpace(tokens, at + 1, to)
  const isOfType = type === 'all' || type === 'screen'
  let rest: boolean | null = true
  if (at < to) {
    if (word() !== 'and') return false
    rest = holdsCondition(tokens, skipSpace(tokens, at + 1, to), to, 0)
  }
  if (rest === null) return false
  return (isOfType && rest) !== (prefix === 'not')
}

/** Null if the condition is not understood. */
function holdsCondition(tokens: CssToken[], from: number, to: number, depth: number): boolean | null {
  let result: boolean | null = null
  let operator = ''
  let isNegated = false
  for (let at = skipSpace(tokens, from, to); at < to && depth < deepest; at = skipSpace(tokens, at, to)) {
    const token = tokens[at]!
    const next = indexAfter(token, at, to)
    if (token.kind === kinds.Ident) {
      const word = token.text.toLowerCase()
      if (word === 'not') isNegated = !isNegated
      else operator = word
    } else if (token.kind === kinds.LeftParenthesis) {
      const held = holdsInBrackets(tokens, at + 1, Math.min(token.close, to), depth + 1)
      const holds = held === null ? null : held !== isNegated
      isNegated = false
      if (operator === '') result = holds
      else result = operator === 'or' ? either(result, holds) : both(result, holds)
    } else return null
    at = next
  }
  return result
}

/** Media Queries Level 4, 3.1: null means unknown. */
const either = (one: boolean | null, other: boolean | null) =>
  one === true || other === true ? true : one === null || other === null ? null : false
const both = (one: boolean | null, other: boolean | null) =>
  one === false || other === false ? false : one === null || other === null ? null : true

function holdsInBrackets(tokens: CssToken[], from: number, to: number, depth: number): boolean | null {
  const first = skipSpace(tokens, from, to)
  const isNested =
    tokens[first]?.kind === kinds.LeftParenthesis || tokens[first]?.text.toLowerCase() === 'not'
  return isNested && first < to
    ? holdsCondition(tokens, first, to, depth)
    : holdsFeature(writtenValue(tokens, from, to))
}

function holdsFeature(feature: string): boolean | null {
  const [name = '', value] = feature.split(/\s*:\s*/)
  const range = rangeOf(name)
  if (range !== null) {
    const asked = value === undefined ? 0 : range.read(value)
    if (asked === null) return null
    if (range.end === 'max') return range.actual <= asked
    return range.end === 'min' || value === undefined ? range.actual >= asked : range.actual === asked
  }
  if (/[<>=]/.test(feature)) return holdsComparison(feature)
  const known = facts[name]
  if (known === undefined) return null
  return value === undefined ? !nothing.has(known[0]!) : known.includes(value)
}

const nothing = new Set(['none', 'no-preference', '0'])

interface Range {
  end: string | undefined
  actual: number
  read(value: string): number | null
}

/** The range of a feature that has `min-` and `max-` forms, or null for other features. */
function rangeOf(feature: string): Range | null {
  const [, vendor = '', min, device = '', name = ''] =
    /^(-webkit-)?(min-|max-)?(device-)?([a-z-]+)$/.exec(feature) ?? []
  const end = min?.slice(0, 3)
  if (name === 'width' || name === 'height')
    return { end, actual: name === 'width' ? widthPx : heightPx, read: lengthPx }
  if (name === 'aspect-ratio') return { end, actual: widthPx / heightPx, read: readRatio }
  if (name === 'resolution') return { end, actual: 1, read: readResolution }
  if (name === 'pixel-ratio' && vendor !== '' && device !== '') return { end, actual: 1, read: readRatio }
  return name === 'color' ? { end, actual: 8, read: readRatio } : null
}

function readRatio(value: string): number | null {
  const [one, other = 1, ...rest] = value.split('/').map(Number)
  return one === undefined || Number.isNaN(one / other) || rest.length > 0 ? null : one / other
}

const inDots: Record<string, number> = { dppx: 1, x: 1, dpi: 1 / 96, dpcm: 2.54 / 96 }

function readResolution(value: string): number | null {
  const [, amount, unit = ''] = /^([\d.]+)([a-z]+)$/.exec(value) ?? []
  return unit in inDots ? Number(amount) * inDots[unit]! : null
}

/** A comparison such as `400px <= width < 50em`. */
function holdsComparison(feature: string): boolean | null {
  const parts = feature.split(/\s*([<>]=?|=)\s*/)
  if (parts.length !== 3 && parts.length !== 5) return null
  const numbers = parts.map((part, index) => (index % 2 === 1 ? null : sizeOf(part)))
  for (let index = 1; index < parts.length; index += 2) {
    const left = numbers[index - 1]
    const right = numbers[index + 1]
    if (left == null || right == null) return null
    if (!compare(left, parts[index]!, right)) return false
  }
  return true
}

function sizeOf(part: string): number | null {
  if (part === 'width' || part === 'device-width') return widthPx
  if (part === 'height' || part === 'device-height') return heightPx
  return lengthPx(part)
}

function compare(left: number, operator: string, right: number): boolean {
  if (operator === '=') return left === right
  if (operator.length === 2 && left === right) return true
  return operator.startsWith('<') ? left < right : left > right
}

function lengthPx(value: string): number | null {
  const length = parseLength(value)
  return length === null ? null : pixelsOf(length, 16, widthPx)
}
