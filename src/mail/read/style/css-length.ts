// CSS lengths as pixels and as shares of the font size and the containing box, including calc().

export interface Length {
  px: number
  /** Multiple of the font size. */
  em: number
  /** Multiple of the size that a percentage refers to. */
  share: number
}

const maxLength = 300
const deepest = 16
/** CSS Values Level 4, 6: pixels per absolute unit. Window units assume a window of 1024 by 768 pixels. */
const absolute: Record<string, number> = {
  '': 1,
  px: 1,
  pt: 4 / 3,
  pc: 16,
  in: 96,
  cm: 96 / 2.54,
  mm: 96 / 25.4,
  q: 96 / 101.6,
  rem: 16,
  rex: 8,
  rch: 8,
  rlh: 19,
  vw: 10.24,
  vh: 7.68,
  vmin: 7.68,
  vmax: 10.24,
  vi: 10.24,
  vb: 7.68,
  cqw: 10.24,
  cqh: 7.68,
  cqi: 10.24,
  cqb: 7.68,
  cqmin: 7.68,
  cqmax: 10.24,
}
const ofFont: Record<string, number> = { em: 1, ex: 0.5, ch: 0.5, cap: 0.7, ic: 1, lh: 1.2 }

/** The length in pixels inside a font of `fontPx` and a box of `boxPx`. */
export function pixelsOf({ px, em, share }: Length, fontPx: number, boxPx: number): number {
  return px + em * fontPx + share * boxPx
}

/** Null if the value is no length, number or percentage. */
export function parseLength(value: string): Length | null {
  if (value.length > maxLength) return null
  const simple = parseSimple(value)
  if (simple !== null || !value.endsWith(')')) return simple
  const reader = new Expression(value)
  const length = reader.readSum(0)
  return reader.isAtEnd() ? length : null
}

function parseSimple(value: string): Length | null {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(%|[a-z]*)$/.exec(value)
  if (match === null) return null
  const amount = Number(match[1])
  const unit = match[2]!
  if (unit === '%') return { px: 0, em: 0, share: amount / 100 }
  if (unit in ofFont) return { px: 0, em: amount * ofFont[unit]!, share: 0 }
  const windowUnit = unit.replace(/^[sld](?=v)/, '')
  return windowUnit in absolute ? { px: amount * absolute[windowUnit]!, em: 0, share: 0 } : null
}

/** Reads sums of products, calc(), min(), max(), clamp(), abs(). Units are not checked against each other. */
class Expression {
  readonly #words: string[]
  #at = 0

  constructor(value: string) {
    this.#words =
      value.match(/[a-z-]*\(|\)|,|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:%|[a-z]+)?|[-+*/]|[^\s]/g) ?? []
  }

  isAtEnd(): boolean {
    return this.#at === this.#words.length
  }

  readSum(depth: number): Length | null {
    let sum = this.#readProduct(depth)
    for (let sign = this.#peek(); sum !== null && (sign === '+' || sign === '-'); sign = this.#peek()) {
      this.#at++
      const next = this.#readProduct(depth)
      sum = next && combine(sum, next, sign === '+' ? 1 : -1)
    }
    return sum
  }

  #peek(): string | undefined {
    return this.#words[this.#at]
  }

  #readProduct(depth: number): Length | null {
    let product = this.#readValue(depth)
    for (let sign = this.#peek(); product !== null && (sign === '*' || sign === '/'); sign = this.#peek()) {
      this.#at++
      const next = this.#readValue(depth)
      if (next === null) return null
      product =
        sign === '/'
          ? scale(product, 1 / next.px)
          : isNumber(next)
            ? scale(product, next.px)
            : scale(next, product.px)
    }
    return product
  }

  #readValue(depth: number): Length | null {
    const word = this.#words[this.#at++]
    if (word === undefined || depth > deepest) return null
    if (!word.endsWith('(')) return parseSimple(word)
    const values: Length[] = []
    do {
      const value = this.readSum(depth + 1)
      if (value === null) return null
      values.push(value)
    } while (this.#words[this.#at++] === ',')
    return this.#words[this.#at - 1] === ')' ? applied(word.slice(0, -1), values) : null
  }
}

const isNumber = ({ em, share }: Length) => em === 0 && share === 0

function scale({ px, em, share }: Length, factor: number): Length {
  return { px: px * factor, em: em * factor, share: share * factor }
}

function combine(one: Length, other: Length, factor: number): Length {
  return {
    px: one.px + other.px * factor,
    em: one.em + other.em * factor,
    share: one.share + other.share * factor,
  }
}

/** Compares lengths with a common font and window, which is right for every length that hides text. */
function applied(name: string, values: Length[]): Length | null {
  const size = (value: Length) => pixelsOf(value, 16, 1024)
  const extreme = (list: Length[], sign: number) =>
    list.reduce((best, value) => (sign * size(value) > sign * size(best) ? value : best))
  if (name === 'min') return extreme(values, -1)
  if (name === 'max') return extreme(values, 1)
  if (name === 'clamp' && values.length === 3)
    return extreme([values[0]!, extreme([values[1]!, values[2]!], -1)], 1)
  if (name === 'abs') return scale(values[0]!, Math.sign(size(values[0]!)))
  return (name === '' || name.endsWith('calc')) && values.length === 1 ? values[0]! : null
}
