// Numbers as people read them.
const plain = new Intl.NumberFormat('en')
const units = ['B', 'kB', 'MB', 'GB', 'TB']

export const count = (value: number): string => plain.format(value)

/** `1.2 MB`: thousands, not 1,024. */
export function bytes(value: number): string {
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)))
  const scaled = value / 1000 ** step
  return `${scaled >= 100 || step === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${units[step]}`
}
