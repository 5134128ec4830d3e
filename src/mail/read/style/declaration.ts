// Declarations of CSS that can hide text or show it again, each as what it sets. What browsers ignore is ignored here.
import { type Color, parseColor } from './css-color.ts'
import { type Length, parseLength, pixelsOf } from './css-length.ts'

/** What the declarations of one element come to. Absent: as it is without any. */
export interface Specified {
  display?: string
  isVisible?: boolean | 'inherit'
  opacity?: number
  fontSize?: Length | 'inherit'
  color?: Paint
  fill?: Paint
  ground?: Paint
  width?: Length | 'auto'
  height?: Length | 'auto'
  maxWidth?: Length | 'auto'
  maxHeight?: Length | 'auto'
  minWidth?: Length | 'auto'
  minHeight?: Length | 'auto'
  clipsX?: boolean
  clipsY?: boolean
  position?: string
  isFloat?: boolean
  left?: Length | 'auto'
  right?: Length | 'auto'
  top?: Length | 'auto'
  bottom?: Length | 'auto'
  marginLeft?: Length | 'auto'
  marginTop?: Length | 'auto'
  indent?: Length | 'inherit'
  /** Clipped to nothing if it is taken out of the flow. */
  isClipped?: boolean
  isCutOut?: boolean
  isMovedAway?: boolean
  isScaledAway?: boolean
  isTranslatedAway?: boolean
  isFilteredAway?: boolean
  isSkipped?: boolean
  overridesDirection?: boolean
}

/** Unknown is a color that is not computed here: it counts as that of what is around it. */
export type Paint = Color | 'unknown' | 'current' | 'inherit'

type Key = keyof Specified
/** Undefined: as without any declaration. */
type Effect = { [K in Key]: [key: K, value: Specified[K] | undefined] }[Key]

export interface Declaration {
  name: string
  value: string
  isImportant: boolean
  /** Null of one that needs the values of custom properties. */
  effects: Effect[] | null
}

const maxValue = 2_000
const tooFar = 999
const farRight = 5_000

/** Null if it says nothing about whether text can be seen, or is wrong. `written` in lower case, with single spaces. */
export function readDeclaration(property: string, written: string): Declaration | null {
  const name = property
    .toLowerCase()
    .replace(/^-(?:webkit|moz|ms)-(?=transform$|filter$|clip-path$|opacity$)/, '')
  const isCustom = name.startsWith('--')
  if (!isCustom && !Object.hasOwn(properties, name)) return null
  const important = /\s?!\s?important$/.exec(written)
  const value = important ? written.slice(0, important.index) : written
  if (value.length > maxValue) return null
  const isImportant = important !== null
  if (isCustom || /\b(?:var|env)\(/.test(value)) return { name, value, isImportant, effects: null }
  const effects = effectsOf(name, value)
  return effects && { name, value, isImportant, effects }
}

const keywords = new Set(['initial', 'inherit', 'unset', 'revert', 'revert-layer'])

/** What `name: value` sets; null if the value is wrong. */
export function effectsOf(name: string, value: string): Effect[] | null {
  const property = properties[name]
  if (property === undefined) return null
  if (!keywords.has(value)) return property.read(value)
  return property.sets.map((key) => [key, initialOf(key, value)] as Effect)
}

function initialOf(key: Key, keyword: string): unknown {
  if (key === 'display') return keyword.startsWith('revert') ? undefined : 'inline'
  if (!inherited.has(key)) return undefined
  if (keyword !== 'initial') return 'inherit'
  return initials[key]
}

const black: Color = { red: 0, green: 0, blue: 0, alpha: 1 }
const inherited = new Set<Key>(['isVisible', 'fontSize', 'color', 'fill', 'indent'])
const initials: Partial<Record<Key, unknown>> = {
  ...{ isVisible: true, fontSize: { px: 16, em: 0, share: 0 }, color: black },
  ...{ fill: 'current', indent: { px: 0, em: 0, share: 0 } },
}

interface Property {
  sets: Key[]
  read(value: string): Effect[] | null
}

function property<K extends Key>(key: K, read: (value: string) => Specified[K] | null): Property {
  return {
    sets: [key],
    read: (value) => {
      const read1 = read(value)
      return read1 === null ? null : [[key, read1] as unknown as Effect]
    },
  }
}

/** One to four lengths, for top, right, bottom and left. */
function sides(keys: [top: Key | null, right: Key | null, bottom: Key | null, left: Key | null]): Property {
  const sets = keys.filter((key) => key !== null)
  return {
    sets,
    read: (value) => {
      const read = wordsOf(value).map(readSize)
      if (read.length === 0 || read.length > 4 || read.includes(null)) return null
      const [top, right = top, bottom = top, left = right] = read
      const each = [top, right, bottom, left]
      return keys.flatMap((key, side) => (key === null ? [] : [[key, each[side]] as unknown as Effect]))
    },
  }
}

const displays =
  /^(?:none|contents|block|inline|run-in|list-item|flow|flow-root|flex|grid|ruby(?:-\w+)?|math|inline-(?:block|flex|grid|table)|table(?:-[a-z-]+)?|-webkit-(?:inline-)?(?:box|flex)|-ms-\w+)(?: (?:block|inline|flow|flow-root|flex|grid|table|ruby|list-item))*$/
const sizes: Record<string, number> = {
  ...{ 'xx-small': 9, 'x-small': 10, small: 13, medium: 16, large: 18, 'x-large': 24, 'xx-large': 32 },
  'xxx-large': 48,
}

const properties: Record<string, Property> = {
  display: property('display', (value) => (displays.test(value) ? value : null)),
  visibility: property('isVisible', (value) =>
    /^(?:visible|hidden|collapse)$/.test(value) ? value === 'visible' : null,
  ),
  opacity: property('opacity', readShare),
  'font-size': property('fontSize', readFontSize),
  font: property('fontSize', readFont),
  color: property('color', readPaint),
  '-webkit-text-fill-color': property('fill', readPaint),
  'background-color': property('ground', readPaint),
  background: property('ground', readGround),
  width: property('width', readSize),
  height: property('height', readSize),
  'max-width': property('maxWidth', readSize),
  'max-height': property('maxHeight', readSize),
  'min-width': property('minWidth', readSize),
  'min-height': property('minHeight', readSize),
  'inline-size': property('width', readSize),
  'block-size': property('height', readSize),
  'max-inline-size': property('maxWidth', readSize),
  'max-block-size': property('maxHeight', readSize),
  'overflow-x': property('clipsX', readOverflow),
  'overflow-y': property('clipsY', readOverflow),
  overflow: {
    sets: ['clipsX', 'clipsY'],
    read: (value) => {
      const [x, y = x] = wordsOf(value).map(readOverflow)
      return x == null || y == null
        ? null
        : [
            ['clipsX', x],
            ['clipsY', y],
          ]
    },
  },
  position: property('position', (value) =>
    /^(?:static|relative|absolute|fixed|sticky|-webkit-sticky)$/.test(value) ? value : null,
  ),
  float: property('isFloat', (value) => /^(?:left|right|inline-start|inline-end)$/.test(value)),
  left: property('left', readSize),
  right: property('right', readSize),
  top: property('top', readSize),
  bottom: property('bottom', readSize),
  'inset-inline-start': property('left', readSize),
  'inset-block-start': property('top', readSize),
  inset: sides(['top', 'right', 'bottom', 'left']),
  'margin-left': property('marginLeft', readSize),
  'margin-top': property('marginTop', readSize),
  'margin-inline-start': property('marginLeft', readSize),
  'margin-block-start': property('marginTop', readSize),
  margin: sides(['marginTop', null, null, 'marginLeft']),
  'text-indent': property('indent', (value) => parseLength(wordsOf(value)[0] ?? '')),
  clip: property('isClipped', readClip),
  'clip-path': property('isCutOut', (value) => cutsOut(value)),
  transform: property('isMovedAway', (value) => movesAway(value)),
  translate: property('isTranslatedAway', (value) => wordsOf(value).some(isAway)),
  scale: property('isScaledAway', (value) => wordsOf(value).some((word) => Number.parseFloat(word) === 0)),
  filter: property(
    'isFilteredAway',
    (value) => /\bopacity\( ?(?:0?\.0\d*|0*)%? ?\)/.test(value) && !/\(\s*\)/.test(value),
  ),
  'content-visibility': property('isSkipped', (value) => value === 'hidden'),
  'unicode-bidi': property('overridesDirection', (value) => value.endsWith('override')),
  all: { sets: [], read: () => null },
}
properties['all']!.sets = [...new Set(Object.values(properties).flatMap(({ sets }) => sets))]

/** The words of a value; what is in brackets is one. */
export function wordsOf(value: string): string[] {
  const words: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= value.length; at++) {
    const character = value[at]
    if (character === '(') depth++
    else if (character === ')') depth--
    else if (character === undefined || (character === ' ' && depth <= 0)) {
      if (at > start) words.push(value.slice(start, at))
      start = at + 1
    }
  }
  return words
}

function readShare(value: string): number | null {
  const length = parseLength(value)
  return length === null || length.em !== 0 ? null : Math.min(1, Math.max(0, length.px + length.share))
}

function readSize(value: string): Length | 'auto' | null {
  return parseLength(value) ?? (/^[a-z-]+(?:\(.*\))?$/.test(value) ? 'auto' : null)
}

function readFontSize(value: string): Length | null {
  if (value in sizes) return { px: sizes[value]!, em: 0, share: 0 }
  if (value === 'smaller' || value === 'larger')
    return { px: 0, em: value === 'larger' ? 1.2 : 0.83, share: 0 }
  const length = parseLength(value)
  if (length === null || pixelsOf(length, 16, 16) < 0) return null
  // A percentage is one of the font around.
  return { px: length.px, em: length.em + length.share, share: 0 }
}

const beforeSize =
  /^(?:normal|italic|oblique|small-caps|bold|bolder|lighter|[1-9]\d{0,3}|(?:ultra-|extra-|semi-)?(?:condensed|expanded))$/

function readFont(value: string): Length | null {
  const words = wordsOf(value.replace(/ ?\/ ?/g, ' / '))
  const at = words.findIndex((word) => !beforeSize.test(word))
  const family = words[at + 1] === '/' ? at + 3 : at + 1
  return at >= 0 && family < words.length ? readFontSize(words[at]!) : null
}

function readPaint(value: string): Paint | null {
  return value === 'currentcolor' ? 'current' : parseColor(value)
}

/** The color of a background, or the first of a gradient. A picture is taken as not loaded, as mail programs do at first. */
function readGround(value: string): Paint {
  for (const word of wordsOf(value)) {
    const paint = readPaint(word)
    if (paint !== null) return paint
    const gradient = /gradient\((.*)\)$/.exec(word)?.[1]
    const first =
      gradient &&
      wordsOf(gradient.replaceAll(',', ' '))
        .map(readPaint)
        .find((color) => color !== null)
    if (first) return first
  }
  return { ...black, alpha: 0 }
}

function readOverflow(value: string): boolean | null {
  return /^(?:visible|hidden|clip|auto|scroll|overlay)$/.test(value) ? value !== 'visible' : null
}

function isAway(written: string): boolean {
  const length = parseLength(written)
  if (length === null) return false
  const px = pixelsOf(length, 16, 1024)
  return px <= -tooFar || px >= farRight
}

const argumentsOf = (content: string) => content.split(/[\s,]+/).filter((word) => word !== '')

/** `rect(0, 0, 0, 0)`: top, right, bottom, left, of which nothing or a pixel is left. */
function readClip(value: string): boolean {
  const match = /^rect\((.*)\)$/.exec(value)
  if (match === null) return false
  const [top, right, bottom, left] = argumentsOf(match[1]!).map((word) => parseLength(word)?.px ?? null)
  const isNothing = (from: number | null | undefined, to: number | null | undefined) =>
    to != null && to - (from ?? 0) <= 1
  return isNothing(top, bottom) || isNothing(left, right)
}

function cutsOut(value: string): boolean {
  const match = /^(inset|circle|ellipse|polygon|rect|xywh)\((.*)\)/.exec(value)
  if (match === null) return false
  const [, shape, content] = match
  const numbers = argumentsOf(content!.replace(/ (?:round|at) .*/, '')).flatMap(
    (word) => parseLength(word) ?? [],
  )
  const size = (length: Length | undefined) => (length ? pixelsOf(length, 16, 1000) : 0)
  if (shape === 'circle' || shape === 'ellipse')
    return numbers.length > 0 && numbers.some((length) => size(length) <= 1)
  if (shape === 'inset') {
    const [top, right = top, bottom = top, left = right] = numbers
    return size(top) + size(bottom) >= 999 || size(left) + size(right) >= 999
  }
  const spread = (axis: number) => {
    const along = numbers.filter((_, index) => index % 2 === axis).map(size)
    return Math.max(...along) - Math.min(...along)
  }
  return shape === 'polygon' && numbers.length > 1 && (spread(0) <= 1 || spread(1) <= 1)
}

/** Scaled to nothing, seen from its edge, or moved out of sight. */
function movesAway(value: string): boolean {
  for (const [, name, content] of value.matchAll(/([a-z0-9]+)\(([^()]*)\)/g)) {
    const given = argumentsOf(content!)
    const numbers = given.map((word) => Number.parseFloat(word))
    if (name!.startsWith('scale') && numbers.includes(0)) return true
    if (name!.startsWith('translate') && given.some(isAway)) return true
    if (/^rotate[xy]$/.test(name!) && Math.abs(numbers[0]! % 180) === 90) return true
    if (
      name === 'matrix' &&
      (numbers[0]! * numbers[3]! === numbers[1]! * numbers[2]! || given.slice(4).some(isAway))
    )
      return true
  }
  return false
}
