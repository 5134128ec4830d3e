// Whether the text of an element can be seen, computed from its declarations and its parent's visibility.
import { type Color, contrast, over, parseColor } from './css-color.ts'
import { type Length, pixelsOf } from './css-length.ts'
import { type Declaration, effectsOf, type Specified, type SpecifiedColor } from './declaration.ts'

/** The state that an element passes to its children. Elements that declare nothing share the object. */
export interface Visibility {
  /** Nothing in the element can be seen, whatever its children declare. */
  isRemoved: boolean
  isVisible: boolean
  fontPx: number
  /** Factor by which its text is enlarged. */
  scale: number
  /** Null: the color of the background. */
  color: Color | null
  fill: Color | null | undefined
  /** Background color under the text, opaque. */
  ground: Color
  opacity: number
  isIndentedAway: boolean
  overridesDirection: boolean
  isDotted: boolean
  hasFontOfNothing: boolean
  /** Its children are laid out as boxes, whatever their names. */
  laysOutBoxes: boolean
  /** Color of links that set none. */
  link: Color
  custom: ReadonlyMap<string, string> | null
  /** Cached result of `showsText`. */
  shows?: boolean
}

export const initialVisibility: Visibility = {
  isRemoved: false,
  isVisible: true,
  fontPx: 16,
  scale: 1,
  color: { red: 0, green: 0, blue: 0, alpha: 1 },
  fill: undefined,
  ground: { red: 255, green: 255, blue: 255, alpha: 1 },
  opacity: 1,
  isIndentedAway: false,
  overridesDirection: false,
  isDotted: false,
  hasFontOfNothing: false,
  laysOutBoxes: false,
  link: { red: 0, green: 0, blue: 238, alpha: 1 },
  custom: null,
}

/** Text is unreadable below this contrast: light gray (#f3f3f3) on white has 1.11, #f4f4f4 has 1.10. */
const leastContrast = 1.1
const leastOpacity = 0.05
const leastFontPx = 2
/** A box of this height shows nothing readable. */
const leastHeightPx = 3
/** Limit for negative margins. A smaller one centers a box. */
const tooFarPx = 999
/** Limit to the left. Text shifted by less still shows the end of its line. */
const tooFarLeftPx = 499
const farRightPx = 5_000
const boxPx = 1_024
const windowHeightPx = 768

/** Whether text with this visibility can be seen. */
export function showsText(visibility: Visibility): boolean {
  visibility.shows ??= canBeSeen(visibility)
  return visibility.shows
}

function canBeSeen(visibility: Visibility): boolean {
  const { isRemoved, isVisible, fontPx, scale, isIndentedAway, ground, opacity } = visibility
  if (isRemoved || !isVisible || isIndentedAway || visibility.isDotted || visibility.hasFontOfNothing)
    return false
  if (fontPx * scale < leastFontPx || opacity < leastOpacity) return false
  const paint = visibility.fill === undefined ? visibility.color : visibility.fill
  return paint !== null && contrast(over(paint, ground, opacity), ground) >= leastContrast
}

/** The visibility of an element inside `around`. `declarations` come in ascending order of precedence. */
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

/** CSS Custom Properties, 3: a declaration without a value and a fallback sets nothing. */
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

/** The last `var(--name, fallback)` or `env(…)` of the text. It contains no other call. */
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
  const fill = specified.fill === 'current' ? undefined : paintOf(specified.fill, color, around.fill)
  const ownGround = groundOf(specified, color)
  const isBox = isBoxOf(specified, name, around)
  const isSeenInText = specified.isGroundInText === true && ownGround != null && ownGround.alpha > 0
  const ground = ownGround && !isSeenInText ? over(ownGround, around.ground) : around.ground
  const indentPx = indent === undefined || indent === 'inherit' ? null : pixelsOf(indent, fontPx, boxPx)
  return {
    isRemoved: around.isRemoved || isHidden(specified, name, { fontPx, isBox }),
    isVisible: inheritedOr(isVisible, around.isVisible),
    fontPx,
    scale: around.scale * (specified.zoom ?? 1) * (isBox || tables.test(name) ? scaleOf(specified) : 1),
    // If the background color is not computed, an inherited text color counts as hidden.
    color: ownGround === null && specified.color === undefined ? null : color,
    fill: isSeenInText && (fill ?? color)?.alpha === 0 ? ownGround : fill,
    ground,
    opacity: around.opacity * (specified.opacity ?? 1),
    isIndentedAway:
      indentPx === null ? around.isIndentedAway : indentPx <= -tooFarLeftPx || indentPx >= farRightPx,
    overridesDirection: specified.overridesDirection ?? false,
    isDotted: inheritedOr(specified.isDotted, around.isDotted),
    hasFontOfNothing: inheritedOr(specified.hasFontOfNothing, around.hasFontOfNothing),
    laysOutBoxes: laysOutBoxes.test(specified.display ?? ''),
    link: around.link,
    custom,
  }
}

const inheritedOr = <Value>(own: Value | 'inherit' | undefined, around: Value) =>
  own === undefined || own === 'inherit' ? around : own

const laysOutBoxes = /\b(?:flex|grid|box)$/

/** The background color, or the gradient over it. Undefined if the element has neither. */
function groundOf({ ground, groundImage }: Specified, current: Color | null): Color | null | undefined {
  const own = paintOf(ground, current, undefined)
  const image = paintOf(groundImage, current, undefined)
  return image === undefined || (image?.alpha === 0 && own !== undefined) ? own : image
}

function scaleOf({ transform, scale }: Specified): number {
  return (transform?.scale ?? 1) * (scale ?? 1)
}

function paintOf<Inherited>(
  paint: SpecifiedColor | undefined,
  current: Color | null,
  inherited: Inherited,
): Color | null | Inherited {
  if (paint === undefined || paint === 'inherit') return inherited
  if (paint === 'current') return current
  return paint === 'unknown' ? null : paint
}

interface Box {
  fontPx: number
  isBox: boolean
}

function isHidden(specified: Specified, name: string, { fontPx, isBox }: Box): boolean {
  if (specified.display === 'none' || specified.isFilteredAway || specified.isCutOut) return true
  if (specified.isMasked || specified.isReplaced || specified.isFolded) return true
  const px: Pixels = (length) =>
    length === undefined || length === 'auto' ? null : pixelsOf(length, fontPx, boxPx)
  if (isOffScreen(specified, px)) return true
  const { transform, isTurnedAway, isTranslatedAway } = specified
  if ((isBox || tables.test(name)) && (transform?.isAway || isTurnedAway || isTranslatedAway)) return true
  return isBox && (specified.isSkipped === true || isCutOff(specified, fontPx, px))
}

type Pixels = (length: Length | 'auto' | undefined) => number | null

/** Outside the window, in an area that scrolling cannot reach. */
function isOffScreen(specified: Specified, px: Pixels): boolean {
  const { position } = specified
  const isOut = position === 'absolute' || position === 'fixed'
  if (isOut && specified.isClipped) return true
  if (isAway(px(specified.marginLeft)) || isAway(px(specified.marginTop))) return true
  if (position === undefined || position === 'static') return false
  const left = px(specified.left)
  const top = px(specified.top)
  if (position === 'fixed' && ((left ?? 0) >= boxPx || (top ?? 0) >= windowHeightPx)) return true
  if (
    [left, px(specified.right)].some((edge) => edge !== null && (edge <= -tooFarLeftPx || edge >= farRightPx))
  )
    return true
  return isAway(top) || isAway(px(specified.bottom)) || (isOut && (px(specified.bottom) ?? 0) >= farRightPx)
}

/** Whether the box has no room for text and clips it at its edges. */
function isCutOff(specified: Specified, fontPx: number, px: Pixels): boolean {
  const { containsSize = false, containsPaint = false } = specified
  const [clipsX, clipsY] = [specified.clipsX || containsPaint, specified.clipsY || containsPaint]
  if (!clipsX && !clipsY) return false
  const height = leastOf(px(specified.height), px(specified.maxHeight))
  const width = leastOf(px(specified.width), px(specified.maxWidth))
  const linePx = px(specified.lineHeight)
  // Text that overflows a small box still shows in its padding.
  const below = Math.max(px(specified.minHeight) ?? 0, px(specified.paddingBottom) ?? 0)
  const rightPx = Math.max(px(specified.minWidth) ?? 0, px(specified.paddingRight) ?? 0)
  const given = height ?? (containsSize ? 0 : linePx)
  if (given !== null && given <= leastHeightPx && below <= leastHeightPx) return true
  if (width !== null && width <= 1 && rightPx <= 1) return true
  // Text is centered vertically in its line height.
  if (height !== null && linePx !== null && (linePx - fontPx) / 2 > Math.max(height, below)) return true
  const startPx = Math.max(px(specified.paddingLeft) ?? 0, px(indentOf(specified)) ?? 0)
  return clipsX && startPx >= boxPx
}

const indentOf = ({ indent }: Specified) => (indent === 'inherit' ? undefined : indent)

const leastOf = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)

const isAway = (px: number | null) => px !== null && px <= -tooFarPx

const boxes = new Set(
  'address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p plaintext pre search section summary ul xmp button'.split(
    ' ',
  ),
)
const tables = /^(?:table|tr|td|th|tbody|thead|tfoot|caption|col|colgroup)$/

/** Whether the element's size counts. It does not for inline elements, nor for cells, which grow with their text. */
function isBoxOf(
  { display, isFloat, position }: Specified,
  name: string,
  { laysOutBoxes }: Visibility,
): boolean {
  const isOut = position === 'absolute' || position === 'fixed'
  if (laysOutBoxes && display !== 'contents') return true
  if (display === undefined) return isOut || isFloat === true || (boxes.has(name) && !tables.test(name))
  if (isOut || isFloat) return true
  return !/^(?:inline|contents|run-in|table.*|ruby.*)$/.test(display)
}

/** The color that an attribute names by HTML's rules for legacy colors, or null if it names none. */
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
