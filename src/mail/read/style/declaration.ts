// Reads the CSS declarations that can hide or show text into the values they set, and ignores those that browsers ignore.
import { type Color, parseColor } from './css-color.ts'
import { type Length, parseLength, pixelsOf } from './css-length.ts'
import {
  cutsOut,
  isAway,
  isRightAngle,
  leastOf,
  masksAll,
  readClip,
  readTransform,
  scaleOf,
  type Transform,
  wordsOf,
} from './out-of-sight.ts'

/** The combined declarations of one element. An absent key has no declaration. */
export interface Specified {
  display?: string
  isVisible?: boolean | 'inherit'
  opacity?: number
  fontSize?: Length | 'inherit'
  color?: SpecifiedColor
  fill?: SpecifiedColor
  ground?: SpecifiedColor
  /** A gradient drawn over `ground`. */
  groundImage?: SpecifiedColor
  /** The background shows only through the letters. */
  isGroundInText?: boolean
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
  lineHeight?: Length | 'auto'
  paddingLeft?: Length | 'auto'
  paddingRight?: Length | 'auto'
  paddingBottom?: Length | 'auto'
  marginLeft?: Length | 'auto'
  marginTop?: Length | 'auto'
  indent?: Length | 'inherit'
  /** Clipped to nothing if the element is out of the flow. */
  isClipped?: boolean
  isCutOut?: boolean
  isMasked?: boolean
  isReplaced?: boolean
  /** CSS containment: the contents do not size the box, or are cut off at its edge. */
  containsSize?: boolean
  containsPaint?: boolean
  transform?: Transform
  scale?: number
  zoom?: number
  isTurnedAway?: boolean
  isTranslatedAway?: boolean
  isFilteredAway?: boolean
  isSkipped?: boolean
  /** Inside a closed `<details>`. */
  isFolded?: boolean
  /** Letters are shown as dots. */
  isDotted?: boolean | 'inherit'
  hasFontOfNothing?: boolean | 'inherit'
  overridesDirection?: boolean
}

/** Unknown: a color that is not computed here. It counts as the color of the background around it. */
export type SpecifiedColor = Color | 'unknown' | 'current' | 'inherit'

type Key = keyof Specified
/** An undefined value resets the key, as if there were no declaration. */
type Effect = { [K in Key]: [key: K, value: Specified[K] | undefined] }[Key]

export interface Declaration {
  name: string
  value: string
  isImportant: boolean
  /** Null for a custom property, and if the value uses `var()` or `env()`. */
  effects: Effect[] | null
}

const maxValue = 2_000

/** Null if the declaration is invalid or cannot affect visibility. `written` is lower case with single spaces. */
export function readDeclaration(property: string, written: string): Declaration | null {
  const name = property
    .toLowerCase()
    .replace(
      /^-(?:webkit|moz|ms)-(?=transform$|filter$|clip-path$|opacity$|mask$|mask-image$|background-clip$)/,
      '',
    )
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

/** The effects of `name: value`, or null if the value is invalid. */
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
const inherited = new Set<Key>([
  'isVisible',
  'fontSize',
  'color',
  'fill',
  'indent',
  'isDotted',
  'hasFontOfNothing',
])
const initials: Partial<Record<Key, unknown>> = {
  isVisible: true,
  fontSize: { px: 16, em: 0, share: 0 },
  color: black,
  fill: 'current',
  indent: { px: 0, em: 0, share: 0 },
  isDotted: false,
  hasFontOfNothing: false,
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
      const read = wordsOf(value).map(readEdge)
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
  'xx-small': 9,
  'x-small': 10,
  small: 13,
  medium: 16,
  large: 18,
  'x-large': 24,
  'xx-large': 32,
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
  background: {
    sets: ['ground', 'groundImage', 'isGroundInText'],
    read: (value) => [
      ['ground', readGround(value)],
      ['groundImage', undefined],
      ['isGroundInText', /(?:^| )text(?: |$)/.test(value)],
    ],
  },
  'background-image': property('groundImage', readGround),
  'background-clip': property('isGroundInText', (value) => value === 'text'),
  'line-height': property('lineHeight', readLineHeight),
  padding: sides([null, 'paddingRight', 'paddingBottom', 'paddingLeft']),
  'padding-left': property('paddingLeft', readEdge),
  'padding-right': property('paddingRight', readEdge),
  'padding-bottom': property('paddingBottom', readEdge),
  width: property('width', readSize),
  height: property('height', readSize),
  'max-width': property('maxWidth', readMost),
  'max-height': property('maxHeight', readMost),
  'min-width': property('minWidth', readSize),
  'min-height': property('minHeight', readSize),
  'inline-size': property('width', readSize),
  'block-size': property('height', readSize),
  'max-inline-size': property('maxWidth', readMost),
  'max-block-size': property('maxHeight', readMost),
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
  left: property('left', readEdge),
  right: property('right', readEdge),
  top: property('top', readEdge),
  bottom: property('bottom', readEdge),
  'inset-inline-start': property('left', readEdge),
  'inset-block-start': property('top', readEdge),
  inset: sides(['top', 'right', 'bottom', 'left']),
  'margin-left': property('marginLeft', readEdge),
  'margin-top': property('marginTop', readEdge),
  'margin-inline-start': property('marginLeft', readEdge),
  'margin-block-start': property('marginTop', readEdge),
  margin: sides(['marginTop', null, null, 'marginLeft']),
  'text-indent': property('indent', (value) => parseLength(wordsOf(value)[0] ?? '')),
  clip: property('isClipped', readClip),
  'clip-path': property('isCutOut', cutsOut),
  transform: property('transform', readTransform),
  rotate: property('isTurnedAway', (value) => /^[xy] /.test(value) && isRightAngle(value.slice(2))),
  zoom: property('zoom', (value) => (parseLength(value) === null ? null : readShare(value) || 1)),
  mask: property('isMasked', masksAll),
  'mask-image': property('isMasked', masksAll),
  contain: {
    sets: ['containsSize', 'containsPaint'],
    read: (value) => [
      ['containsSize', /\b(?:strict|size)\b/.test(value)],
      ['containsPaint', /\b(?:strict|content|paint)\b/.test(value)],
    ],
  },
  content: property('isReplaced', (value) => /^(?:url\(|[a-z-]*gradient\()/.test(value)),
  '-webkit-text-security': property('isDotted', (value) => value !== 'none'),
  'font-size-adjust': property('hasFontOfNothing', (value) => Number.parseFloat(value) === 0),
  translate: property('isTranslatedAway', (value) => wordsOf(value).some(isAway)),
  scale: property('scale', (value) => leastOf(wordsOf(value).slice(0, 2).map(scaleOf))),
  filter: property(
    'isFilteredAway',
    (value) => /\bopacity\( ?(?:0?\.0\d*|0*)%? ?\)/.test(value) && !/\(\s*\)/.test(value),
  ),
  'content-visibility': property('isSkipped', (value) => value === 'hidden'),
  'unicode-bidi': property('overridesDirection', (value) => value.endsWith('override')),
  all: { sets: [], read: () => null },
}
properties['all']!.sets = [...new Set(Object.values(properties).flatMap(({ sets }) => sets))]

function readShare(value: string): number | null {
  const length = parseLength(value)
  return length === null || length.em !== 0 ? null : Math.min(1, Math.max(0, length.px + length.share))
}

const ofContent =
  /^(?:auto|(?:-(?:webkit|moz)-)?(?:min-content|max-content|fit-content|fill-available|available|stretch)|fit-content\(.*\))$/
/** A length function that contains words or units not computed here. */
const computedLater = /^(?:calc|min|max|clamp|round|mod|rem|abs|anchor|anchor-size|calc-size)\(.*\)$/

/** Only pages without a doctype allow lengths without a unit. Such a length counts up to 3 px, because it may hide text. */
function readOffset(value: string): Length | null {
  const length = parseLength(value)
  return length !== null && /^[+-]?[\d.]+$/.test(value) && length.px > 3 ? null : length
}

/** A width or a height. */
function readSize(value: string): Length | 'auto' | null {
  return readOffset(value) ?? (ofContent.test(value) || computedLater.test(value) ? 'auto' : null)
}

function readMost(value: string): Length | 'auto' | null {
  return value === 'none' ? 'auto' : value === 'auto' ? null : readSize(value)
}

function readEdge(value: string): Length | 'auto' | null {
  return readOffset(value) ?? (value === 'auto' || computedLater.test(value) ? 'auto' : null)
}

/** A plain number or a percentage is relative to the font size. */
function readLineHeight(value: string): Length | 'auto' | null {
  const length = parseLength(value)
  if (length === null) return value === 'normal' ? 'auto' : null
  return /^[\d.]+%?$/.test(value) ? { px: 0, em: length.px + length.share, share: 0 } : length
}

function readFontSize(value: string): Length | null {
  if (value in sizes) return { px: sizes[value]!, em: 0, share: 0 }
  if (value === 'smaller' || value === 'larger')
    return { px: 0, em: value === 'larger' ? 1.2 : 0.83, share: 0 }
  const length = parseLength(value)
  if (length === null || pixelsOf(length, 16, 16) < 0) return null
  if (/^[\d.]+$/.test(value) && length.px >= 2) return null
  // A percentage refers to the font size of the parent.
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

function readPaint(value: string): SpecifiedColor | null {
  return value === 'currentcolor' ? 'current' : parseColor(value)
}

/** A background's color, or the first color of a gradient. Pictures count as not loaded, as in mail programs at first. */
function readGround(value: string): SpecifiedColor {
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
