// Times as the desk's answers have them.

export function isoOrNull(at: Date | null): string | null {
  return at?.toISOString() ?? null
}
