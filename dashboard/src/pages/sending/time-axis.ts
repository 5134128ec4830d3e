// A time axis on which both a tenth of a second and three days are visible.

export interface Mark {
  /** Position from 0 to 1. */
  place: number
  elapsedMs: number
}

export interface TimeAxis {
  /** Returns the position of any moment, from 0 to 1. */
  placeOf(atMs: number): number
  /** Labelled moments, far enough apart to be readable. */
  marks: Mark[]
}

/** The minimum width of a gap, so that simultaneous moments can be distinguished. */
const least = 0.35
const unitMs = 40

/** Makes each gap as wide as its logarithm. Order and rough lengths stay, and long waits leave room for milliseconds. */
export function makeTimeAxis(momentsMs: readonly number[], apart = 0.15): TimeAxis {
  const moments = [...new Set(momentsMs)].sort((a, b) => a - b)
  const start = moments[0] ?? 0
  const ends: number[] = [0]
  for (let at = 1; at < moments.length; at++)
    ends.push(ends[at - 1]! + least + Math.log10(1 + (moments[at]! - moments[at - 1]!) / unitMs))
  const whole = ends.at(-1) || 1
  const places = ends.map((end) => end / whole)
  const placeOf = (atMs: number) => interpolate(moments, places, atMs)
  const marks = moments.map((atMs, index) => ({ place: places[index]!, elapsedMs: atMs - start }))
  return { placeOf, marks: spread(marks, apart) }
}

function interpolate(moments: readonly number[], places: readonly number[], atMs: number): number {
  const after = moments.findIndex((moment) => moment >= atMs)
  if (after === -1) return places.at(-1) ?? 0
  if (after === 0) return places[0] ?? 0
  const [from, to] = [moments[after - 1]!, moments[after]!]
  const share = (atMs - from) / (to - from)
  return places[after - 1]! + share * (places[after]! - places[after - 1]!)
}

/** Returns the first and last mark, and those between them that leave enough room. */
function spread(marks: readonly Mark[], apart: number): Mark[] {
  const last = marks.at(-1)
  const kept: Mark[] = []
  for (const mark of marks.slice(0, -1))
    if (mark.place - (kept.at(-1)?.place ?? -1) >= apart && (last?.place ?? 1) - mark.place >= apart)
      kept.push(mark)
  return last ? [...kept, last] : kept
}
