// How many bytes something has, as people say it.
const steps = ['B', 'kB', 'MB', 'GB', 'TB']

/** `512 B`, `1.2 kB`, `10 MB`. */
export function writtenBytes(bytes: number): string {
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1000 ** step
  return `${step > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${steps[step]}`
}
