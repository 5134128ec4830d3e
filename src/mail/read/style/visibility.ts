// Whether the text of an element can be seen, from what is declared for it and from the element around it.
import { type Color, contrast, over, parseColor } from './css-color.ts'
import { type Length, pixelsOf } from './css-length.ts'
import { type Declaration, effectsOf, type Paint, type Specified } from './declaration.ts'

/** What an element passes on to those in it. Objects are shared by elements that declare nothing. */
export interface Visibility {
  /** Nothing in it can be seen, whatever it declares. */
  isRemoved: boolean
  isVisible: boolean
  fontPx: number
  /** Null is that of the background. */
  color: Color | null
  fill: Color | null | undefined
  /** What the text stands on, opaque. */
  ground: Color
  opacity: number
  isIndentedAway: boolean
  overridesDirection: boolean
  /** Of links without a color of their own. */
  link: Color
  custom: ReadonlyMap<string, string> | null
  /** Whether text can be seen, once it was asked for. */
  shows?: boolean
}

export const initialVisibility: Visibility = {
  isRemoved: false,
  isVisible: true,
  fontPx: 16,
  color: { red: 0, green: 0, blue: 0, alpha: 1 },
  fill: undefined,
  ground: { red: 255, green: 255, blue: 255, alpha: 1 },
  opacity: 1,
  isIndentedAway: false,
  overridesDirection: false,
  link: { red: 0, green: 0, blue: 238, alpha: 1 },
  custom: null,
}

/** Below it nobody reads a word: light gray (#f3f3f3) on white has 1.11, #f4f4f4 has 1.10. */
const leastContrast = 1.1
const leastOpacity = 0.05
const leastFontPx = 2
const tooFarPx = 999
const farRightPx = 5_000
const boxPx = 1_024

/** Whether text with this visibility can be seen. */
export function showsText(visibility: Visibility): boolean {
  visibility.shows ??= canBeSeen(visibility)
  return visibility.shows
}

function canBeSeen(visibility: Visibility): boolean {
  const { isRemoved, isVisible, fontPx, isIndentedAway, ground, opacity } = visibility
  if (isRemoved || !isVisible || isIndentedAway || fontPx < leastFontPx || opacity < leastOpacity)
    return false
  const paint = visibility.fill === undefined ? visibility.color : visibility.fill
  return paint !== null && contrast(over(paint, ground, opacity), ground) >= leastContrast
}

/** That of an element within `around`. `declarations` come in the order in which they win, the last one first of all. */
export function visibilityOf(
  around: Visibility,
  name: string,
  declarations: readonly Declaration[],
  defaults: Specified,
): Visibility {
  const custom = customOf(around.custom, declarations)
  const specified: Specified = { ...defaults }
  for (const declaration of declarations) {
    const effects = declaration.effects ?? substituted(declaration, custom)
    for (const [key, value] of effects) set(specified, key, value)
  }
  return computed(around, name, specified, custom)
}

function set(specified: Specified, key: keyof Specified, value: unknown): void {
  ;(specified as Record<string, unknown>)[key] = value
}

const maxCustom = 200
const maxSubstituted = 2_000
const maxSubstitutions = 16

function customOf(around: Visibility['custom'], declarations: readonly Declaration[]): Visibility['custom'] {
  const own = declarations.filter(({ name }) => name.startsWith('--'))
  if (own.length === 0) return around
  const custom = new Map(around)
  for (const { name, value } of own) if (custom.size < maxCustom) custom.set(name, value)
  return custom
}

/** CSS Custom Properties, 3: without a value and a fallback the declaration sets nothing. */
function substituted({ name, value }: Declaration, custom: Visibility['custom']) {
  if (name.startsWith('--')) return []
  let text = value
  for (let count = 0; count < maxSubstitutions && text.length <= maxSubstituted; count++) {
    const call = lastCall(text)
    if (call === null) return effectsOf(name, text.trim()) ?? []
    const found = custom?.get(call.variable) ?? call.fallback
    if (found === undefined) return []
    text = `${text.slice(0, call.from)}${found.trim()}${text.slice(call.to)}`
  }
  return []
}

/** The last `var(--name, fallback)` or `env(…)` of the text: no other is within it. */
function lastCall(text: string) {
  const from = Math.max(text.lastIndexOf('var('), text.lastIndexOf('env('))
  if (from < 0) return null
  let depth = 0
  let to = from
  for (; to < text.length; to++) {
    if (text[to] === '(') depth++
    else if (text[to] === ')' && --depth === 0) break
  }
  const content = text.slice(from + 4, to)
  const comma = content.indexOf(',')
  const variable = (comma < 0 ? content : content.slice(0, comma)).trim()
  return { from, to: to + 1, variable, fallback: comma < 0 ? undefined : content.slice(comma + 1) }
}

function computed(
  around: Visibility,
  name: string,
  specified: Specified,
  custom: Visibility['custom'],
): Visibility {
  const { fontSize, isVisible, indent } = specified
  const fontPx =
    fontSize === undefined || fontSize === 'inherit' ? around.fontPx : pixelsOf(fontSize, around.fontPx, 0)
  const color = paintOf(specified.color, around.color, around.color)
  const ownGround = paintOf(specified.ground, color, undefined)
  const ground = ownGround ? over(ownGround, around.ground) : around.ground
  const indentPx = indent === undefined || indent === 'inherit' ? null : pixelsOf(indent, fontPx, boxPx)
  return {
    isRemoved: around.isRemoved || isHidden(specified, name, fontPx),
    isVisible: isVisible === undefined || isVisible === 'inherit' ? around.isVisible : isVisible,
    fontPx,
    // On a background of which the color is not computed, none is known to be seen.
    color: ownGround === null && specified.color === undefined ? null : color,
    fill: specified.fill === 'current' ? undefined : paintOf(specified.fill, color, around.fill),
    ground,
    opacity: around.opacity * (specified.opacity ?? 1),
    isIndentedAway:
      indentPx === null ? around.isIndentedAway : indentPx <= -tooFarPx || indentPx >= farRightPx,
    overridesDirection: specified.overridesDirection ?? false,
    link: around.link,
    custom,
  }
}

function paintOf<Inherited>(
  paint: Paint | undefined,
  current: Color | null,
  inherited: Inherited,
): Color | null | Inherited {
  if (paint === undefined || paint === 'inherit') return inherited
  if (paint === 'current') return current
  return paint === 'unknown' ? null : paint
}

function isHidden(specified: Specified, name: string, fontPx: number): boolean {
  if (specified.display === 'none' || specified.isFilteredAway || specified.isCutOut) return true
  const px = (length: Length | 'auto' | undefined) =>
    length === undefined || length === 'auto' ? null : pixelsOf(length, fontPx, boxPx)
  const isOut = specified.position === 'absolute' || specified.position === 'fixed'
  if (isOut && specified.isClipped) return true
  if (isAway(px(specified.marginLeft)) || isAway(px(specified.marginTop))) return true
  if (specified.position !== undefined && specified.position !== 'static') {
    const edges = [specified.left, specified.right].map(px)
    if (edges.some((edge) => isAway(edge) || (edge ?? 0) >= farRightPx)) return true
    if (isAway(px(specified.top)) || isAway(px(specified.bottom))) return true
  }
  if (!isBox(specified, name)) return false
  if (specified.isMovedAway || specified.isScaledAway || specified.isTranslatedAway || specified.isSkipped)
    return true
  if (!specified.clipsX && !specified.clipsY) return false
  const isNothing = (least: number | null, ...given: (number | null)[]) =>
    given.some((size) => size !== null && size <= 1) && (least === null || least <= 1)
  return (
    isNothing(px(specified.minHeight), px(specified.height), px(specified.maxHeight)) ||
    isNothing(px(specified.minWidth), px(specified.width), px(specified.maxWidth))
  )
}

const isAway = (px: number | null) => px !== null && px <= -tooFarPx

const boxes = new Set(
  'address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p plaintext pre search section summary ul xmp button'.split(
    ' ',
  ),
)
const tables = /^(?:table|tr|td|th|tbody|thead|tfoot|caption|col|colgroup)$/

/** Whether its size and transform count: not of what runs along with the text, nor of cells, which grow with theirs. */
function isBox({ display, isFloat, position }: Specified, name: string): boolean {
  const isOut = position === 'absolute' || position === 'fixed'
  if (display === undefined) return isOut || isFloat === true || (boxes.has(name) && !tables.test(name))
  if (isOut || isFloat) return true
  return !/^(?:inline|contents|run-in|table.*|ruby.*)$/.test(display)
}

/** The color that an attribute names, by the rules of HTML for old colors; null if it names none. */
export function legacyColor(written: string): Color | null {
  const value = written.trim().toLowerCase()
  if (value === '' || value === 'transparent') return null
  const known = /^(?:#?[0-9a-f]{3}|#[0-9a-f]{6}|[a-z]+)$/.test(value) ? parseColor(value) : null
  if (known !== null && known !== 'unknown') return known
  let digits = value
    .slice(0, 128)
    .replace(/^#/, '')
    .replace(/[^0-9a-f]/g, '0')
  digits = digits.padEnd(Math.max(3, Math.ceil(digits.length / 3) * 3), '0')
  const third = digits.length / 3
  const parts = [0, 1, 2].map((part) => digits.slice(part * third, (part + 1) * third).slice(-8))
  while (parts[0]!.length > 2 && parts.every((part) => part.startsWith('0')))
    for (const part of [0, 1, 2]) parts[part] = parts[part]!.slice(1)
  const [red, green, blue] = parts.map((part) => Number.parseInt(part.slice(0, 2), 16))
  return { red: red!, green: green!, blue: blue!, alpha: 1 }
}
