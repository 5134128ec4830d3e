// The bodies that a load sends, written to one file beforehand and used round robin by the load generators.
import { readFileSync, writeFileSync } from 'node:fs'

/** Divisible by the numbers of destinations, so that each gets an equal share. */
const poolSize = 600
/** Bodies of 100 KB are fewer: they are signed, written and read before the measurement starts. */
const largePoolSize = 60
const hugePoolSize = 12

export interface SavedPool {
  path: string
  /** The length of each body, in the order of the file. */
  lengths: number[]
}

/** Returns how many different bodies of this size a load uses. */
export function poolSizeOf(bodyBytes: number): number {
  if (bodyBytes >= 1_000_000) return hugePoolSize
  return bodyBytes >= 50_000 ? largePoolSize : poolSize
}

export function savePool(path: string, bodies: readonly Uint8Array[]): SavedPool {
  writeFileSync(path, Buffer.concat(bodies))
  return { path, lengths: bodies.map(({ length }) => length) }
}

export function readPool({ path, lengths }: SavedPool): Buffer[] {
  const bytes = readFileSync(path)
  let end = 0
  return lengths.map((length) => bytes.subarray(end, (end += length)))
}
