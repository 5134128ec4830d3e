// Durations as people write them in settings: `90s`, `5m`, `72h`, `30d`.

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Returns the milliseconds of `90s`, `5m`, `72h`, `30d`, `250ms`; null if `text` is not a duration. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text.trim())
  return match ? Number(match[1]) * unitMs[match[2]!]! : null
}
