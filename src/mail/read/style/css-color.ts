// CSS colors, and the visible contrast between two of them.

export interface Color {
  /** 0 to 255 each. */
  red: number
  green: number
  blue: number
  /** 0 to 1. */
  alpha: number
}

const maxLength = 200
const deepest = 4
// CSS Color Level 4, 6.1 and 6.2: the named colors, and the system colors with Chromium's values.
const names = `aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc bisque ffe4c4
  black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a burlywood deb887
  cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 cornflowerblue 6495ed cornsilk fff8dc
  crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b darkgoldenrod b8860b darkgray a9a9a9
  darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00
  darkorchid 9932cc darkred 8b0000 darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b
  darkslategray 2f4f4f darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493
  deepskyblue 00bfff dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0
  forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520
  gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 indianred cd5c5c
  indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 lawngreen 7cfc00
  lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff lightgoldenrodyellow fafad2
  lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa
  lightskyblue 87cefa lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0
  lime 00ff00 limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa
  mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee
  mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 mintcream f5fffa
  mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23
  orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee
  palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd
  powderblue b0e0e6 purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1
  saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d
  silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa
  springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0
  violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32 canvas ffffff
  canvastext 000000 window ffffff windowtext 000000 buttonface efefef buttontext 000000 field ffffff
  fieldtext 000000 infobackground ffffff infotext 000000 menu ffffff menutext 000000 linktext 0000ee
  visitedtext 551a8b activetext ff0000 graytext 808080 highlight b5d5ff highlighttext 000000 threedface c0c0c0
  background ffffff appworkspace ffffff buttonhighlight efefef buttonshadow efefef mark ffff00`

const named = new Map<string, string>()
for (const [, name, hex] of names.matchAll(/([a-z]+) ([0-9a-f]{6})/g)) named.set(name!, hex!)

/**
 * The color, `'unknown'` if its function is not computed here, or null if the value is no color. Also accepts digits
 * without `#`, which attributes and pages without a doctype may use.
 */
export function parseColor(value: string, depth = 0): Color | 'unknown' | null {
  if (value === 'transparent') return { red: 0, green: 0, blue: 0, alpha: 0 }
  const hex = named.get(value) ?? /^#?([0-9a-f]{3,8})$/.exec(value)?.[1]
  if (hex !== undefined) return fromHex(hex)
  const match = /^([a-z-]{2,20})\((.*)\)$/.exec(value)
  if (match === null || value.length > maxLength) return functions.test(value) ? 'unknown' : null
  const name = match[1]!
  const content = match[2]!.trim()
  if (name === 'light-dark' && depth < deepest) return parseColor(splitArguments(content)[0]!, depth + 1)
  if (name === 'color-mix' && depth < deepest) return mixed(content, depth)
  if (!functions.test(value)) return null
  if (/\bfrom\b|\(/.test(content)) return 'unknown'
  const numbers = content.replace(/^[a-z][\w-]* /, '').match(amounts) ?? []
  return numbers.length < 3 ? null : fromNumbers(name, content, numbers)
}

const amounts = /[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:%|[a-z]+)?|none/g

const functions = /^(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color|color-mix|device-cmyk|contrast-color)\(/

function fromHex(hex: string): Color | null {
  const isShort = hex.length < 5
  if (hex.length === 5 || hex.length === 7) return null
  const digits = isShort ? [...hex].map((digit) => digit + digit) : (hex.match(/../g) ?? [])
  const [red = 0, green = 0, blue = 0, alpha = 255] = digits.map((pair) => Number.parseInt(pair, 16))
  return { red, green, blue, alpha: alpha / 255 }
}

function splitArguments(content: string): string[] {
  const found: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= content.length; at++) {
    const character = content[at]
    if (character === '(') depth++
    else if (character === ')') depth--
    else if (character === undefined || (character === ',' && depth === 0)) {
      found.push(content.slice(start, at).trim())
      start = at + 1
    }
  }
  return found
}

/** The number written. A percentage means that share of `whole`. */
function numberOf(written: string | undefined, whole: number): number {
  if (written === undefined || written === 'none') return 0
  const number = Number.parseFloat(written)
  return written.endsWith('%') ? (number / 100) * whole : number
}

function fromNumbers(name: string, content: string, numbers: string[]): Color | 'unknown' {
  const [first, second, third, fourth] = numbers
  const alpha = fourth === undefined ? 1 : Math.min(1, Math.max(0, numberOf(fourth, 1)))
  if (name.startsWith('rgb'))
    return rgb(numberOf(first, 255), numberOf(second, 255), numberOf(third, 255), alpha)
  if (name.startsWith('hsl'))
    return fromHsl(degrees(first!), numberOf(second, 100) / 100, numberOf(third, 100) / 100, alpha)
  if (name === 'hwb')
    return fromHwb(degrees(first!), numberOf(second, 100) / 100, numberOf(third, 100) / 100, alpha)
  if (name === 'color' && /^(?:srgb|display-p3|a98-rgb|prophoto-rgb|rec2020) /.test(content))
    return rgb(numberOf(first, 1) * 255, numberOf(second, 1) * 255, numberOf(third, 1) * 255, alpha)
  // Only the lightness counts, because it distinguishes text from its background.
  if (name === 'lab' || name === 'lch') return gray(numberOf(first, 100) / 100, alpha)
  if (name === 'oklab' || name === 'oklch') return gray(numberOf(first, 1), alpha)
  return 'unknown'
}

function rgb(red: number, green: number, blue: number, alpha: number): Color {
  const within = (channel: number) => Math.min(255, Math.max(0, channel))
  return { red: within(red), green: within(green), blue: within(blue), alpha }
}

const gray = (lightness: number, alpha: number) =>
  rgb(lightness * 255, lightness * 255, lightness * 255, alpha)

function degrees(written: string): number {
  const number = Number.parseFloat(written) || 0
  if (written.endsWith('turn')) return number * 360
  if (written.endsWith('grad')) return number * 0.9
  return written.endsWith('rad') ? (number * 180) / Math.PI : number
}

/** CSS Color Level 4, 7.1. */
function fromHsl(hue: number, saturation: number, lightness: number, alpha: number): Color {
  const channel = (shift: number) => {
    const angle = (((shift + hue / 30) % 12) + 12) % 12
    const amount = saturation * Math.min(lightness, 1 - lightness)
    return 255 * (lightness - amount * Math.max(-1, Math.min(angle - 3, 9 - angle, 1)))
  }
  return rgb(channel(0), channel(8), channel(4), alpha)
}

function fromHwb(hue: number, white: number, black: number, alpha: number): Color {
  if (white + black >= 1) return gray(white / (white + black), alpha)
  const pure = fromHsl(hue, 1, 0.5, alpha)
  const channel = (value: number) => value * (1 - white - black) + white * 255
  return rgb(channel(pure.red), channel(pure.green), channel(pure.blue), alpha)
}

function mixed(content: string, depth: number): Color | 'unknown' {
  const parts = splitArguments(content).slice(1)
  const colors = parts.map((part) => parseColor(part.replace(/^\d+%\s+|\s+[\d.]+%$/, ''), depth + 1))
  const [one, other] = colors
  if (!one || !other || one === 'unknown' || other === 'unknown') return 'unknown'
  const given = [/([\d.]+)%/.exec(parts[0]!)?.[1], /([\d.]+)%/.exec(parts[1]!)?.[1]]
  const share =
    given[0] !== undefined
      ? Number(given[0]) / 100
      : given[1] !== undefined
        ? 1 - Number(given[1]) / 100
        : 0.5
  return blend(one, other, Math.min(1, share))
}

function blend(one: Color, other: Color, share: number): Color {
  const channel = (name: keyof Color) => one[name] * share + other[name] * (1 - share)
  return { red: channel('red'), green: channel('green'), blue: channel('blue'), alpha: channel('alpha') }
}

/** `color` drawn over an opaque `under`. */
export function over(color: Color, under: Color, opacity = 1): Color {
  return { ...blend({ ...color, alpha: 1 }, under, color.alpha * opacity), alpha: 1 }
}

/** The contrast ratio of WCAG 2.2, 1.4.3: 1 for equal colors, 21 for black on white. */
export function contrast(one: Color, other: Color): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05)
}

function luminance({ red, green, blue }: Color): number {
  const linear = (channel: number) => {
    const value = channel / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}
