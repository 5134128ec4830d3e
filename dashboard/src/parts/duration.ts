// Writes a duration in up to two units: `38 ms`, `1.2 s`, `4 min 10 s`, `3 d 4 h`.
const units: [name: string, ms: number][] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${whole} ms`
  if (whole < 10_000) return `${(whole / 1_000).toFixed(1)} s`
  // Rounds to the second unit first, so that 59.9 s become a minute.
  const first = units.findIndex(([, size]) => whole >= size)
  const [, smallest] = units[first + 1] ?? units[first]!
  const rounded = Math.round(whole / smallest) * smallest
  const at = units.findIndex(([, size]) => rounded >= size)
  const [name, size] = units[at]!
  const rest = units[at + 1]
  const left = rest ? Math.floor((rounded % size) / rest[1]) : 0
  return left > 0
    ? `${Math.floor(rounded / size)} ${name} ${left} ${rest![0]}`
    : `${Math.floor(rounded / size)} ${name}`
}
