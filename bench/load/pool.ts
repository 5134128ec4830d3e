// What a load sends, prepared before it: many bodies in one file, taken in turn by the programs that send them.
import { readFileSync, writeFileSync } from 'node:fs'

/** Divisible by the numbers of destinations, so that each has its share. */
const poolSize = 600
/** Those of 100 KB are fewer: they are signed, written and read before anything is measured. */
const largePoolSize = 60

export interface SavedPool {
  path: string
  /** Of each body, as they follow each other in the file. */
  lengths: number[]
}

/** How many different bodies of this size are sent in turn. */
export function poolSizeOf(bodyBytes: number): number {
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
