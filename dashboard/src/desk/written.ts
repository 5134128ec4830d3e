// How the desk writes amounts.
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `10 MiB`, `1.5 GiB`. */
export function writtenBytes(bytes: number): string {
  const step = Math.min(units.length - 1, bytes > 0 ? Math.floor(Math.log2(bytes) / 10) : 0)
  const amount = bytes / 1024 ** step
  return `${amount.toLocaleString('en', { maximumFractionDigits: amount < 10 ? 1 : 0 })} ${units[step]}`
}
