// Sizes as people write them.
const steps = ['B', 'kB', 'MB', 'GB', 'TB']
const binarySteps = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** Decimal units: `512 B`, `1.2 kB`, `10 MB`. */
export function writtenBytes(bytes: number): string {
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** step
  return `${step > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${steps[step]}`
}

/** Binary units: `10 MiB`, `1.5 GiB`. Limits and memory are powers of 2. */
export function binaryBytes(bytes: number): string {
  const step = bytes > 0 ? Math.min(binarySteps.length - 1, Math.floor(Math.log2(bytes) / 10)) : 0
  return `${(bytes / 1024 ** step).toLocaleString('en', { maximumFractionDigits: 1 })} ${binarySteps[step]}`
}
