// Writes numbers for people.
const plain = new Intl.NumberFormat('en')

export const count = (value: number): string => plain.format(value)

/** Writes a fraction as `12.3 %`, with up to two decimals below 1 %. */
export function percent(fraction: number): string {
  const value = fraction * 100
  const digits = value < 1 ? 2 : 1
  // 100 % is only for the whole: 99.97 % is not rounded up.
  const shown =
    value < 100 && value >= 99.95
      ? '99.9'
      : value
          .toFixed(digits)
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, '')
  return `${shown} %`
}
