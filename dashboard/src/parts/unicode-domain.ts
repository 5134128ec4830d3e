// A domain in readable form: A-labels (xn--…) decoded by RFC 3492, except labels that do not decode.
const [base, least, most, skew, damp, initialBias, initialCode] = [36, 1, 26, 38, 700, 72, 128]

export function unicodeDomain(domain: string): string {
  return domain
    .split('.')
    .map((label) => (label.startsWith('xn--') ? (decode(label.slice(4)) ?? label) : label))
    .join('.')
}

function decode(label: string): string | null {
  const cut = label.lastIndexOf('-')
  const codes = [...label.slice(0, Math.max(0, cut))].map((letter) => letter.codePointAt(0)!)
  const rest = label.slice(cut + 1)
  let [code, bias, index, at] = [initialCode, initialBias, 0, 0]
  while (at < rest.length) {
    const before = index
    for (let weight = 1, k = base; ; k += base) {
      const digit = digitOf(rest[at++])
      if (digit === null) return null
      index += digit * weight
      const threshold = Math.min(most, Math.max(least, k - bias))
      if (digit < threshold) break
      weight *= base - threshold
    }
    const length = codes.length + 1
    bias = adapt(index - before, length, before === 0)
    code += Math.floor(index / length)
    index %= length
    if (code > 0x10ffff) return null
    codes.splice(index++, 0, code)
  }
  return String.fromCodePoint(...codes)
}

function digitOf(letter: string | undefined): number | null {
  if (letter === undefined) return null
  const digit = '0123456789abcdefghijklmnopqrstuvwxyz'.indexOf(letter)
  return digit === -1 ? null : digit < 10 ? digit + 26 : digit - 10
}

function adapt(delta: number, length: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? damp : 2))
  rest += Math.floor(rest / length)
  let k = 0
  for (; rest > ((base - least) * most) / 2; k += base) rest = Math.floor(rest / (base - least))
  return k + Math.floor(((base - least + 1) * rest) / (rest + skew))
}
