// Writes numbers for people.
const plain = new Intl.NumberFormat('en')

export const count = (value: number): string => plain.format(value)

/** Writes a fraction as `12.3 %`. Small ones get the digits that they need. */
export function percent(fraction: number): string {
  const value = fraction * 100
  const digits = value < 1 ? 2 : 1
  // Less than the whole must not read 100 %.
  const shown =
    value < 100 && value >= 99.95
      ? '99.9'
      : value
          .toFixed(digits)
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, '')
  return `${shown} %`
}
