// Numbers as people read them.
const plain = new Intl.NumberFormat('en')

export const count = (value: number): string => plain.format(value)

/** `12.3 %` of a fraction; small ones with the digits that they need. */
export function percent(fraction: number): string {
  const value = fraction * 100
  const digits = value < 1 ? 2 : 1
  // What is not all must not read 100 %.
  const shown =
    value < 100 && value >= 99.95
      ? '99.9'
      : value
          .toFixed(digits)
          .replace(/(\.\d*?)0+$/, '$1')
          .replace(/\.$/, '')
  return `${shown} %`
}
